//! SCRAM-SHA-1 and SCRAM-SHA-256, the client's side (RFC 5802, RFC 7677), as MongoDB uses them.
//!
//! Pure: the nonce is an argument, and what a server answers is checked before it is believed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    Sha1,
    Sha256,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ScramError {
    #[error("the password holds characters that SASLprep forbids")]
    Password,
    #[error("the server's answer is not SCRAM: {0}")]
    Protocol(&'static str),
    #[error("the server asks for {0} rounds: fewer than 4096 are not safe, more than 10 million not sensible")]
    Rounds(u32),
    #[error("the server does not know the password itself: its signature is wrong")]
    Signature,
}

impl Mechanism {
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Sha1 => "SCRAM-SHA-1",
            Mechanism::Sha256 => "SCRAM-SHA-256",
        }
    }

    fn hash(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Mechanism::Sha1 => Sha1::digest(bytes).to_vec(),
            Mechanism::Sha256 => Sha256::digest(bytes).to_vec(),
        }
    }

    fn hmac(self, key: &[u8], bytes: &[u8]) -> Vec<u8> {
        match self {
            Mechanism::Sha1 => keyed::<Hmac<Sha1>>(key).map(|mac| finish(mac, bytes)),
            Mechanism::Sha256 => keyed::<Hmac<Sha256>>(key).map(|mac| finish(mac, bytes)),
        }
        .unwrap_or_default()
    }

    /// The salted password: PBKDF2 with one block.
    fn salted(self, password: &[u8], salt: &[u8], rounds: u32) -> Vec<u8> {
        match self {
            Mechanism::Sha1 => keyed::<Hmac<Sha1>>(password).map(|mac| iterate(&mac, salt, rounds)),
            Mechanism::Sha256 => keyed::<Hmac<Sha256>>(password).map(|mac| iterate(&mac, salt, rounds)),
        }
        .unwrap_or_default()
    }
}

/// One authentication, from the first message to the server's signature.
pub struct Scram {
    mechanism: Mechanism,
    password: Vec<u8>,
    nonce: String,
    first_bare: String,
    server_signature: Vec<u8>,
}

impl Scram {
    /// `nonce` is printable text without commas, fresh for every authentication.
    pub fn new(mechanism: Mechanism, user: &str, password: &str, nonce: &str) -> Result<Scram, ScramError> {
        let secret = match mechanism {
            Mechanism::Sha1 => {
                let digest = md5::Md5::digest(format!("{user}:mongo:{password}"));
                digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into_bytes()
            }
            Mechanism::Sha256 => {
                stringprep::saslprep(password).map_err(|_| ScramError::Password)?.into_owned().into_bytes()
            }
        };
        let user = user.replace('=', "=3D").replace(',', "=2C");
        let first_bare = format!("n={user},r={nonce}");
        Ok(Scram { mechanism, password: secret, nonce: nonce.into(), first_bare, server_signature: Vec::new() })
    }

    /// The payload of `saslStart`.
    pub fn first(&self) -> String {
        format!("n,,{}", self.first_bare)
    }

    /// The payload that answers the server's first message.
    pub fn proof(&mut self, server_first: &str) -> Result<String, ScramError> {
        let field = |name: &str| server_first.split(',').find_map(|part| part.strip_prefix(name));
        let nonce = field("r=").ok_or(ScramError::Protocol("it has no nonce"))?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(ScramError::Protocol("its nonce does not continue ours"));
        }
        let salt = field("s=").and_then(|salt| STANDARD.decode(salt).ok()).ok_or(ScramError::Protocol("bad salt"))?;
        let rounds: u32 =
            field("i=").and_then(|rounds| rounds.parse().ok()).ok_or(ScramError::Protocol("no rounds"))?;
        if !(4096..=10_000_000).contains(&rounds) {
            return Err(ScramError::Rounds(rounds));
        }
        let mechanism = self.mechanism;
        let salted = mechanism.salted(&self.password, &salt, rounds);
        let client_key = mechanism.hmac(&salted, b"Client Key");
        let without_proof = format!("c=biws,r={nonce}");
        let message = format!("{},{server_first},{without_proof}", self.first_bare);
        let signature = mechanism.hmac(&mechanism.hash(&client_key), message.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(&signature).map(|(key, sign)| key ^ sign).collect();
        self.server_signature = mechanism.hmac(&mechanism.hmac(&salted, b"Server Key"), message.as_bytes());
        Ok(format!("{without_proof},p={}", STANDARD.encode(proof)))
    }

    /// Checks the server's last message: it knows the password too.
    pub fn verify(&self, server_final: &str) -> Result<(), ScramError> {
        let signature = server_final.split(',').find_map(|part| part.strip_prefix("v="));
        let signature =
            signature.and_then(|text| STANDARD.decode(text).ok()).ok_or(ScramError::Protocol("no signature"))?;
        match !self.server_signature.is_empty() && signature == self.server_signature {
            true => Ok(()),
            false => Err(ScramError::Signature),
        }
    }
}

fn keyed<M: KeyInit>(key: &[u8]) -> Option<M> {
    M::new_from_slice(key).ok()
}

fn finish<M: Mac>(mut mac: M, bytes: &[u8]) -> Vec<u8> {
    mac.update(bytes);
    mac.finalize().into_bytes().to_vec()
}

fn iterate<M: Mac + Clone>(mac: &M, salt: &[u8], rounds: u32) -> Vec<u8> {
    let mut first = salt.to_vec();
    first.extend_from_slice(&1_u32.to_be_bytes());
    let mut block = finish(mac.clone(), &first);
    let mut result = block.clone();
    for _ in 1..rounds {
        block = finish(mac.clone(), &block);
        result.iter_mut().zip(&block).for_each(|(sum, byte)| *sum ^= byte);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_7677_is_reproduced() {
        let mut scram = Scram::new(Mechanism::Sha256, "user", "pencil", "rOprNGfwEbeRWgbNEkqO").unwrap();
        assert_eq!(scram.first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let server = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        assert_eq!(
            scram.proof(server).unwrap(),
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        assert_eq!(scram.verify("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="), Ok(()));
        assert_eq!(
            scram.verify("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G5="),
            Err(ScramError::Protocol("no signature"))
        );
        assert_eq!(scram.verify("v=AAAA"), Err(ScramError::Signature));
    }

    #[test]
    fn sha_1_hashes_the_password_with_the_user_first() {
        // The example of the drivers' authentication specification.
        let mut scram = Scram::new(Mechanism::Sha1, "user", "pencil", "fyko+d2lbbFgONRv9qkxdawL").unwrap();
        let server = "r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE,s=rQ9ZY3MntBeuP3E1TDVC4w==,i=10000";
        assert_eq!(
            scram.proof(server).unwrap(),
            "c=biws,r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE,p=MC2T8BvbmWRckDw8oWl5IVghwCY="
        );
        assert_eq!(scram.verify("v=UMWeI25JD1yNYZRMpZ4VHvhZ9e0="), Ok(()));
    }

    #[test]
    fn a_server_that_cheats_is_not_answered() {
        let mut scram = Scram::new(Mechanism::Sha256, "a,b=c", "x", "abc").unwrap();
        assert_eq!(scram.first(), "n,,n=a=2Cb=3Dc,r=abc");
        for (server, error) in [
            ("r=abc,s=AAAA,i=4096", ScramError::Protocol("its nonce does not continue ours")),
            ("r=xyz1,s=AAAA,i=4096", ScramError::Protocol("its nonce does not continue ours")),
            ("s=AAAA,i=4096", ScramError::Protocol("it has no nonce")),
            ("r=abcd,s=AAAA,i=1", ScramError::Rounds(1)),
            ("r=abcd,s=!,i=4096", ScramError::Protocol("bad salt")),
        ] {
            assert_eq!(scram.proof(server), Err(error), "{server}");
        }
        assert_eq!(scram.verify("v="), Err(ScramError::Signature));
    }
}
