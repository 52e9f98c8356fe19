//! TLS towards the server: which certificates are believed, and which one is shown.

use crate::uri::TlsOptions;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::{
    self, CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

/// Where Linux distributions keep the certificates that the system believes.
const SYSTEM_ROOTS: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

pub(crate) struct Tls {
    connector: TlsConnector,
}

impl Tls {
    pub(crate) fn new(options: &TlsOptions) -> Result<Tls> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(invalid)?;
        let strict = match options.allow_invalid_certificates {
            true => None,
            false => Some(
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots(options)?), provider.clone())
                    .build()
                    .map_err(|error| invalid(format!("the certificates to believe in are no use: {error}")))?,
            ),
        };
        let verifier = Lenient { strict, any_name: options.allow_invalid_hostnames, provider };
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        let config = match &options.key_file {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let chain = certificates(path)?;
                let key = PrivateKeyDer::from_pem_file(path)
                    .map_err(|error| invalid(format!("no private key in tlsCertificateKeyFile {path}: {error}")))?;
                builder.with_client_auth_cert(chain, key).map_err(invalid)?
            }
        };
        Ok(Tls { connector: TlsConnector::from(Arc::new(config)) })
    }

    pub(crate) async fn handshake(&self, name: &str, socket: TcpStream) -> Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(name.to_owned()).map_err(invalid)?;
        self.connector.connect(name, socket).await
    }
}

fn roots(options: &TlsOptions) -> Result<RootCertStore> {
    let path = match &options.ca_file {
        Some(path) => path.as_str(),
        None => SYSTEM_ROOTS.iter().copied().find(|path| std::path::Path::new(path).exists()).ok_or_else(|| {
            invalid("this system has no list of certificates to believe in: name one with tlsCAFile=FILE")
        })?,
    };
    let mut store = RootCertStore::empty();
    let (added, _) = store.add_parsable_certificates(certificates(path)?);
    match added {
        0 => Err(invalid(format!("{path} holds no usable certificate"))),
        _ => Ok(store),
    }
}

fn certificates(path: &str) -> Result<Vec<CertificateDer<'static>>> {
    let unreadable = |error| invalid(format!("cannot read certificates from {path}: {error}"));
    CertificateDer::pem_file_iter(path).map_err(unreadable)?.collect::<std::result::Result<_, _>>().map_err(unreadable)
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorKind::InvalidInput, error)
}

/// The ordinary check, less what the connection string waives.
#[derive(Debug)]
struct Lenient {
    /// Nothing: every certificate is believed.
    strict: Option<Arc<WebPkiServerVerifier>>,
    any_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        let Some(strict) = &self.strict else { return Ok(ServerCertVerified::assertion()) };
        match strict.verify_server_cert(certificate, chain, name, stapled, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.any_name => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
