//! The connection string: `mongodb://user:password@host:port,host:port/database?options`.
//!
//! Options that concern background work and the connections themselves are read; what a client of the proxy decides for
//! itself is ignored; unknown ones are warned about. The password is never shown: where a string is torn, any part of it may
//! be one, so that errors and warnings name places and options, never what stands there.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;
use wire::scram::Mechanism;

/// One server's name and port.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Host {
    pub name: String,
    pub port: u16,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.contains(':') {
            true => write!(f, "[{}]:{}", self.name, self.port),
            false => write!(f, "{}:{}", self.name, self.port),
        }
    }
}

impl Host {
    /// `name`, `name:port`, `[v6]:port`; the port is 27017 unless given.
    pub fn parse(text: &str) -> Result<Host, HostError> {
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (name, after) = rest.split_once(']').ok_or(HostError::Bracket)?;
                let port = after.strip_prefix(':');
                if port.is_none() && !after.is_empty() {
                    return Err(HostError::Bracket);
                }
                (name, port)
            }
            None => match text.split_once(':') {
                Some((name, port)) => (name, Some(port)),
                None => (text, None),
            },
        };
        let port = match port {
            Some(port) => port.parse().ok().filter(|port| *port != 0).ok_or(HostError::Port)?,
            None => 27017,
        };
        let name = decode(name).ok_or(HostError::Name)?;
        if name.is_empty() {
            return Err(HostError::Empty);
        }
        if name.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control()) {
            return Err(HostError::Name);
        }
        Ok(Host { name: name.to_lowercase(), port })
    }
}

/// Why a host cannot be read.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum HostError {
    #[error("it is empty")]
    Empty,
    #[error("its name is not a host name")]
    Name,
    #[error("what follows its ':' is not a port")]
    Port,
    #[error("its brackets do not hold an address")]
    Bracket,
}

/// The user that background work logs in as.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub user: String,
    pub password: String,
    /// The database that knows the user.
    pub source: String,
    /// Nothing: the strongest that the server offers for the user.
    pub mechanism: Option<Mechanism>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.user, self.source)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    pub ca_file: Option<String>,
    /// The client's certificate and key, one PEM file.
    pub key_file: Option<String>,
    pub allow_invalid_certificates: bool,
    pub allow_invalid_hostnames: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    pub hosts: Vec<Host>,
    pub credentials: Option<Credentials>,
    pub replica_set: Option<String>,
    pub tls: Option<TlsOptions>,
    /// Talk to the one host named, whatever set it belongs to.
    pub direct: bool,
    /// A standalone server will do: for verbs that only read. Never set by the string itself.
    pub standalone: bool,
    pub connect_timeout: Duration,
    pub socket_timeout: Option<Duration>,
    /// How long a primary is waited for.
    pub selection_timeout: Duration,
    /// How long the first answer is waited for: as long, if the string says how long that is.
    pub first_timeout: Duration,
    /// The write concern of background work: `w` as text or number, and `journal`.
    pub w: Option<String>,
    pub journal: Option<bool>,
    pub app_name: Option<String>,
    /// What was not understood, for people to read.
    pub warnings: Vec<String>,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum UriError {
    #[error("it does not begin with mongodb://")]
    Scheme,
    #[error("mongodb+srv:// needs DNS look-ups that Pleach does not make")]
    Srv,
    #[error("it names no host")]
    NoHost,
    #[error("host number {place} is not usable: {error}")]
    Host { place: usize, error: HostError },
    #[error("the {0} holds a '%' that is not followed by two hex digits")]
    Escape(&'static str),
    #[error("the user or password holds one of : / ? # [ ] @ unescaped")]
    Credentials,
    #[error("its first '@' comes after a '/', '?' or '#'")]
    LateAt,
    #[error("the option {name} is not {expected}")]
    Option { name: &'static str, expected: &'static str },
    #[error("{0} cannot be relayed: clients authenticate themselves, with SCRAM-SHA-256 or SCRAM-SHA-1")]
    Mechanism(&'static str),
    #[error("directConnection=true goes with one host only")]
    Direct,
}

impl UriError {
    /// What to write instead.
    pub fn hint(&self) -> &'static str {
        match self {
            UriError::Srv => {
                "list the hosts: mongodb://host1:27017,host2:27017/?replicaSet=NAME&tls=true (`dig SRV _mongodb._tcp.<name>` shows them)"
            }
            UriError::Escape(_) | UriError::Credentials | UriError::LateAt => {
                "escape these characters in user and password: %40 for @, %3A for :, %2F for /, %3F for ?, %23 for #, %25 for %"
            }
            UriError::Host { .. } => {
                "a host is written like name:27017, hosts are separated by commas; a password before it must have @, : and / escaped, such as %40, %3A and %2F"
            }
            _ => "a connection string looks like mongodb://user:password@host:27017/?replicaSet=rs&tls=true",
        }
    }
}

/// How long the first answer is waited for unless the string says otherwise: a wrong port should be an error soon.
const FIRST_TIMEOUT: Duration = Duration::from_secs(5);

/// Mechanisms of drivers that are known by name.
const OTHER_MECHANISMS: &[&str] = &["GSSAPI", "MONGODB-AWS", "MONGODB-CR", "MONGODB-OIDC", "MONGODB-X509", "PLAIN"];

/// Options that are understood by drivers and mean nothing here: clients choose them for themselves.
const FOR_CLIENTS: &[&str] = &[
    "compressors",
    "heartbeatfrequencyms",
    "localthresholdms",
    "maxidletimems",
    "maxpoolsize",
    "maxconnecting",
    "minpoolsize",
    "readconcernlevel",
    "readpreference",
    "readpreferencetags",
    "maxstalenessseconds",
    "retryreads",
    "retrywrites",
    "servermonitoringmode",
    "srvmaxhosts",
    "srvservicename",
    "uuidrepresentation",
    "waitqueuetimeoutms",
    "wtimeoutms",
    "zlibcompressionlevel",
    "loadbalanced",
    "timeoutms",
];

impl Uri {
    pub fn parse(text: &str) -> Result<Uri, UriError> {
        let rest = match text.strip_prefix("mongodb://") {
            Some(rest) => rest,
            None if text.starts_with("mongodb+srv://") => return Err(UriError::Srv),
            None => return Err(UriError::Scheme),
        };
        // A '/' or '?' in the password ends what looks like the hosts, and the '@' comes later.
        let login_ends = rest.find('@');
        if rest.find(['/', '?', '#']).is_some_and(|end| login_ends.is_some_and(|at| end < at)) {
            return Err(UriError::LateAt);
        }
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        if hosts.is_empty() {
            return Err(UriError::NoHost);
        }
        let host =
            |(at, text): (usize, &str)| Host::parse(text).map_err(|error| UriError::Host { place: at + 1, error });
        let hosts = hosts.split(',').enumerate().map(host).collect::<Result<Vec<_>, _>>()?;
        let database = decode(database).ok_or(UriError::Escape("database"))?;
        let mut uri = Uri {
            hosts,
            credentials: login.map(|login| credentials(login, &database)).transpose()?,
            replica_set: None,
            tls: None,
            direct: false,
            standalone: false,
            connect_timeout: Duration::from_secs(10),
            socket_timeout: None,
            selection_timeout: Duration::from_secs(30),
            first_timeout: FIRST_TIMEOUT,
            w: None,
            journal: None,
            app_name: None,
            warnings: Vec::new(),
        };
        let mut seen = HashSet::new();
        for option in options.split(['&', ';']).filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let value = decode(value).ok_or(UriError::Escape("options"))?;
            uri.take(name, &value)?;
            if !seen.insert(name.to_lowercase()) {
                uri.warnings.push(format!("{} is given twice; the last one counts", option_name(name)));
            }
        }
        if uri.direct && uri.hosts.len() > 1 {
            return Err(UriError::Direct);
        }
        Ok(uri)
    }

    fn take(&mut self, name: &str, value: &str) -> Result<(), UriError> {
        let truth = |name| match value {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(UriError::Option { name, expected: "true or false" }),
        };
        let time = |name| match value.parse() {
            Ok(time) => Ok(Duration::from_millis(time)),
            Err(_) => Err(UriError::Option { name, expected: "a number of milliseconds" }),
        };
        match name.to_lowercase().as_str() {
            "replicaset" => self.replica_set = Some(value.into()),
            "tls" | "ssl" => match truth("tls")? {
                true => _ = self.tls.get_or_insert_default(),
                false => self.tls = None,
            },
            "tlscafile" => self.tls.get_or_insert_default().ca_file = Some(value.into()),
            "tlscertificatekeyfile" => self.tls.get_or_insert_default().key_file = Some(value.into()),
            "tlsallowinvalidcertificates" => {
                self.tls.get_or_insert_default().allow_invalid_certificates = truth("tlsAllowInvalidCertificates")?
            }
            "tlsallowinvalidhostnames" => {
                self.tls.get_or_insert_default().allow_invalid_hostnames = truth("tlsAllowInvalidHostnames")?
            }
            "tlsinsecure" => {
                let (tls, insecure) = (self.tls.get_or_insert_default(), truth("tlsInsecure")?);
                tls.allow_invalid_certificates = insecure;
                tls.allow_invalid_hostnames = insecure;
            }
            "authsource" => {
                if let Some(credentials) = &mut self.credentials {
                    credentials.source = value.into();
                }
            }
            "authmechanism" => {
                let mechanism = match value {
                    "SCRAM-SHA-1" => Mechanism::Sha1,
                    "SCRAM-SHA-256" => Mechanism::Sha256,
                    other => {
                        let known = OTHER_MECHANISMS.iter().find(|known| **known == other);
                        return Err(UriError::Mechanism(known.unwrap_or(&"that authMechanism")));
                    }
                };
                if let Some(credentials) = &mut self.credentials {
                    credentials.mechanism = Some(mechanism);
                }
            }
            "directconnection" => self.direct = truth("directConnection")?,
            "connecttimeoutms" => self.connect_timeout = time("connectTimeoutMS")?,
            "sockettimeoutms" => self.socket_timeout = Some(time("socketTimeoutMS")?).filter(|time| !time.is_zero()),
            "serverselectiontimeoutms" => {
                self.selection_timeout = time("serverSelectionTimeoutMS")?;
                self.first_timeout = self.selection_timeout;
            }
            "w" => self.w = Some(value.into()),
            "journal" => self.journal = Some(truth("journal")?),
            "appname" => self.app_name = Some(value.into()),
            lower if FOR_CLIENTS.contains(&lower) => {}
            _ => self.warnings.push(format!("{} is not known and is ignored", option_name(name))),
        }
        Ok(())
    }
}

/// An option by its name; what is not like a name is perhaps part of a password.
fn option_name(name: &str) -> String {
    match name.len() <= 40 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        true => format!("the option {name}"),
        false => "an option".to_owned(),
    }
}

/// Shown without the password.
impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("mongodb://")?;
        if let Some(credentials) = &self.credentials {
            write!(f, "{}:***@", credentials.user)?;
        }
        let hosts: Vec<String> = self.hosts.iter().map(Host::to_string).collect();
        write!(f, "{}/", hosts.join(","))?;
        match &self.replica_set {
            Some(name) => write!(f, "?replicaSet={name}"),
            None => Ok(()),
        }
    }
}

fn credentials(login: &str, database: &str) -> Result<Credentials, UriError> {
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    if [user, password].iter().any(|part| part.contains(['/', '?', '#', '[', ']', '@', ':'])) || user.is_empty() {
        return Err(UriError::Credentials);
    }
    let source = if database.is_empty() { "admin" } else { database };
    Ok(Credentials {
        user: decode(user).ok_or(UriError::Escape("user"))?,
        password: decode(password).ok_or(UriError::Escape("password"))?,
        source: source.to_owned(),
        mechanism: None,
    })
}

/// Resolves `%` escapes; `None` if one is torn or the result is not UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_connection_string_is_read() {
        let uri = Uri::parse(
            "mongodb://us%40er:p%3Aw%2F@A.example,[::1]:37018,b:1/shop?replicaSet=rs&tls=true&tlsCAFile=/ca.pem&authMechanism=SCRAM-SHA-256\
             &connectTimeoutMS=1500&w=majority&journal=true&retryWrites=true&nonsense=1",
        )
        .unwrap();
        let shown: Vec<String> = uri.hosts.iter().map(Host::to_string).collect();
        assert_eq!(shown, ["a.example:27017", "[::1]:37018", "b:1"]);
        let login = uri.credentials.as_ref().unwrap();
        assert_eq!((&*login.user, &*login.password, &*login.source), ("us@er", "p:w/", "shop"));
        assert_eq!(login.mechanism, Some(Mechanism::Sha256));
        assert_eq!(uri.tls.as_ref().unwrap().ca_file.as_deref(), Some("/ca.pem"));
        assert_eq!(uri.connect_timeout, Duration::from_millis(1500));
        assert_eq!(uri.warnings, ["the option nonsense is not known and is ignored"]);
        assert_eq!(uri.to_string(), "mongodb://us@er:***@a.example:27017,[::1]:37018,b:1/?replicaSet=rs");
        assert!(!format!("{uri:?}").contains("p:w/"));
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let uri = Uri::parse("mongodb://u:p@h/?authSource=other").unwrap();
        assert_eq!(uri.credentials.unwrap().source, "other");
        assert_eq!(Uri::parse("mongodb://u:p@h").unwrap().credentials.unwrap().source, "admin");
        let uri = Uri::parse("mongodb://h").unwrap();
        assert_eq!((uri.tls, uri.direct, uri.selection_timeout), (None, false, Duration::from_secs(30)));
    }

    #[test]
    fn mistakes_are_named() {
        let host = |place, error| UriError::Host { place, error };
        let rows: &[(&str, UriError)] = &[
            ("http://h", UriError::Scheme),
            ("mongodb+srv://cluster.example", UriError::Srv),
            ("mongodb:///db", UriError::NoHost),
            ("mongodb://h:port", host(1, HostError::Port)),
            ("mongodb://h:0", host(1, HostError::Port)),
            ("mongodb://a,,b", host(2, HostError::Empty)),
            ("mongodb://a,[::1", host(2, HostError::Bracket)),
            ("mongodb://u:p%4@h", UriError::Escape("password")),
            ("mongodb://u:p:w@h", UriError::Credentials),
            ("mongodb://h/?tls=yes", UriError::Option { name: "tls", expected: "true or false" }),
            (
                "mongodb://h/?connectTimeoutMS=soon",
                UriError::Option { name: "connectTimeoutMS", expected: "a number of milliseconds" },
            ),
            ("mongodb://h/?authMechanism=MONGODB-X509", UriError::Mechanism("MONGODB-X509")),
            ("mongodb://a,b/?directConnection=true", UriError::Direct),
        ];
        for (text, error) in rows {
            assert_eq!(Uri::parse(text).unwrap_err(), *error, "{text}");
        }
    }

    #[test]
    fn no_part_of_a_password_is_shown_whatever_is_torn() {
        for text in [
            "mongodb://u:SECRET/@x",
            "mongodb://u:SECRET/x",
            "mongodb://u:SECRET",
            "mongodb://u:1234/SECRET@x",
            "mongodb://u:SECRET?@x",
            "mongodb://u:a?b=SECRET@x",
            "mongodb://u:a?tls=SECRET@x",
            "mongodb://u:a#SECRET@x",
            "mongodb://u:SECRET%4@x",
            "mongodb://u:%ff%SECRET@x",
            "mongodb://u:SEC:RET@x",
            "mongodb://u:SECRET@",
            "mongodb://u@SECRET:SECRET@x",
            "mongodb://u@x:SECRET",
            "mongodb://u:a@SECRET/b@x",
            "mongodb://:SECRET@x",
            "mongodb://u:[SECRET]@x",
            "mongodb://u:SECRET@h:x",
            "mongodb://u:SECRET@h,",
            "mongodb://u:p@h/?SECRET@1",
            "mongodb://u:p@h/?tls=SECRET",
            "mongodb://u:p@h/?authMechanism=SECRET",
            "mongodb://u:p@h/?authMechanismProperties=AWS_SESSION_TOKEN:SECRET",
            "mongodb://u:p@h/?tlsCertificateKeyFilePassword=SECRET",
            "mongodb://u:p@h/?connectTimeoutMS=SECRET",
            "mongodb://u:p@h/%SECRET",
            "mongodb+srv://u:SECRET@h",
            "mongodb:/u:SECRET@h",
            "u:SECRET@h",
            "mongodb://u:SECRET@h/?nonsense=1&nonsense=1",
        ] {
            let said = match Uri::parse(text) {
                Ok(uri) => format!("{uri} {uri:?} {}", uri.warnings.join(" ")),
                Err(error) => format!("{error} {error:?} {}", error.hint()),
            };
            assert!(!said.contains("SEC") && !said.contains("RET"), "{text}: {said}");
        }
    }
}
