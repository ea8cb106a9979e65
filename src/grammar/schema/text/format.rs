//! Formats as expressions over whole texts.
//!
//! Written as patterns and read by the same parser; what a regular expression cannot say
//! (the total length of a host name, encoded host names) is replaced by something stricter.

use super::ecma;
use super::re::Re;

/// The expression of format `name`, if it is known.
pub fn lookup(name: &str) -> Option<impl FnOnce() -> Re + use<>> {
    let source = source(name)?;
    Some(move || ecma::parse(&source).unwrap_or_else(|_| Re::all()))
}

/// Whether the validator knows format `name` and [`lookup`] does not: expressions with balanced
/// groups, host names whose characters only tables tell.
pub fn is_left_to_the_validator(name: &str) -> bool {
    matches!(name, "regex" | "idn-hostname")
}

const DATE: &str = r"(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)";
const TIME: &str = r"(?:(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,18})?(?:[Zz]|[+\-](?:[01]\d|2[0-3]):[0-5]\d)|23:59:60(?:\.\d{1,18})?(?:[Zz]|[+\-]00:00))";
/// A label of a host name, at most 63 characters, and one of at most 22: without hyphens at its
/// ends and in both third and fourth place, which is reserved for encoded names.
const LABEL: &str = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9\-]{0,2}[a-zA-Z0-9])?|[a-zA-Z0-9][a-zA-Z0-9\-](?:[a-zA-Z0-9][a-zA-Z0-9\-]|-[a-zA-Z0-9])[a-zA-Z0-9\-]{0,58}[a-zA-Z0-9])";
const SHORT: &str = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9\-]{0,2}[a-zA-Z0-9])?|[a-zA-Z0-9][a-zA-Z0-9\-](?:[a-zA-Z0-9][a-zA-Z0-9\-]|-[a-zA-Z0-9])[a-zA-Z0-9\-]{0,17}[a-zA-Z0-9])";
const OCTET: &str = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)";
const ESCAPED: &str = r"%[0-9a-fA-F]{2}";

fn source(name: &str) -> Option<String> {
    let host = format!(r"(?:{LABEL}(?:\.{LABEL}){{0,2}}|{SHORT}(?:\.{SHORT}){{3,10}})");
    let ipv4 = format!(r"{OCTET}(?:\.{OCTET}){{3}}");
    Some(match name {
        "date" => DATE.to_owned(),
        "time" => TIME.to_owned(),
        "date-time" => format!("{DATE}[Tt]{TIME}"),
        "duration" => {
            let time = r"T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S)";
            format!(r"P(?:\d+W|(?:\d+Y(?:\d+M(?:\d+D)?)?|\d+M(?:\d+D)?|\d+D)(?:{time})?|{time})")
        }
        "email" => {
            let atom = r"[a-zA-Z0-9!#$%&'*+/=?^_`{|}~\-]+";
            format!(r#"(?:{atom}(?:\.{atom})*|"(?:[ !#-\[\]-~]|\\[ -~])*")@(?:{host}|\[{ipv4}\])"#)
        }
        "idn-email" => {
            let atom = r"[a-zA-Z0-9!#$%&'*+/=?^_`{|}~\-\u{80}-\u{10FFFF}]+";
            format!(r"{atom}(?:\.{atom})*@[^\s@\x00-\x1F]+")
        }
        "hostname" => host,
        "ipv4" => ipv4,
        "ipv6" => ipv6(&ipv4),
        "uuid" => r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}".to_owned(),
        "uri" => uri(&ipv4, "", false),
        "uri-reference" => uri(&ipv4, "", true),
        "iri" => uri(
            &ipv4,
            r"\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}\u{10000}-\u{EFFFD}",
            false,
        ),
        "iri-reference" => uri(
            &ipv4,
            r"\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}\u{10000}-\u{EFFFD}",
            true,
        ),
        "uri-template" => {
            let variable = r"(?:[A-Za-z0-9_]|%[0-9a-fA-F]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9a-fA-F]{2}))*(?::[1-9]\d{0,3}|\*)?";
            format!(
                r#"(?:[^\x00-\x20"'%<>\\^`{{|}}\x7F]|{ESCAPED}|\{{[+#./;?&=,!@|]?{variable}(?:,{variable})*\}})*"#
            )
        }
        "json-pointer" => r"(?:/(?:[^~/]|~[01])*)*".to_owned(),
        "relative-json-pointer" => r"(?:0|[1-9]\d*)(?:#|(?:/(?:[^~/]|~[01])*)*)".to_owned(),
        _ => return None,
    })
}

fn ipv6(ipv4: &str) -> String {
    let h = "[0-9a-fA-F]{1,4}";
    let last = format!("(?:{h}:{h}|{ipv4})");
    let mut forms = vec![format!("(?:{h}:){{6}}{last}")];
    // RFC 3986: [ *n( h16 ":" ) h16 ] "::" …
    for before in 0..8usize {
        let head = match before {
            0 => String::new(),
            n => format!("(?:(?:{h}:){{0,{}}}{h})?", n - 1),
        };
        let tail = match before {
            7 => String::new(),
            6 => h.to_owned(),
            5 => last.clone(),
            n => format!("(?:{h}:){{{}}}{last}", 5 - n),
        };
        forms.push(format!("{head}::{tail}"));
    }
    format!("(?:{})", forms.join("|"))
}

/// RFC 3986, appendix A; with `more` characters, RFC 3987.
fn uri(ipv4: &str, more: &str, reference: bool) -> String {
    let pchar = format!(r"(?:[a-zA-Z0-9\-._~!$&'()*+,;=:@{more}]|{ESCAPED})");
    let tail = format!(r"(?:\?(?:{pchar}|[/?])*)?(?:#(?:{pchar}|[/?])*)?");
    let userinfo = format!(r"(?:(?:[a-zA-Z0-9\-._~!$&'()*+,;=:{more}]|{ESCAPED})*@)?");
    let name = format!(r"(?:[a-zA-Z0-9\-._~!$&'()*+,;={more}]|{ESCAPED})*");
    let v6 = ipv6(ipv4);
    let host = format!(r"(?:\[(?:{v6}|[vV][0-9a-fA-F]+\.[a-zA-Z0-9\-._~!$&'()*+,;=:]+)\]|{name})");
    let authority = format!(r"//{userinfo}{host}(?::\d*)?(?:/{pchar}*)*");
    let path = format!(r"(?:/(?:{pchar}+(?:/{pchar}*)*)?|{pchar}+(?:/{pchar}*)*)?");
    let absolute = format!(r"[a-zA-Z][a-zA-Z0-9+\-.]*:(?:{authority}|{path}){tail}");
    if reference {
        let segment = format!(r"(?:[a-zA-Z0-9\-._~!$&'()*+,;=@{more}]|{ESCAPED})+");
        let relative = format!(r"(?:/(?:{pchar}+(?:/{pchar}*)*)?|{segment}(?:/{pchar}*)*)?");
        format!(r"(?:{absolute}|(?:{authority}|{relative}){tail})")
    } else {
        absolute
    }
}
