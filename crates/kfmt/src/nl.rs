//! Netlink attributes (`struct nlattr`, linux/netlink.h): length and type, 16 bits each in host order,
//! then the payload, padded to four bytes.

use crate::ParseError;

const WHAT: &str = "netlink attributes";
const HEADER: usize = 4;
/// `NLA_F_NESTED` and `NLA_F_NET_BYTEORDER`, which are not part of the type.
const FLAGS: u16 = 0xc000;
const NESTED: u16 = 0x8000;
/// Longest payload that one attribute can hold.
pub const MAX_PAYLOAD: usize = u16::MAX as usize - HEADER;

/// One attribute: its type without the flag bits, and its payload without padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attr<'a> {
    /// `nla_type` without `NLA_F_NESTED` and `NLA_F_NET_BYTEORDER`.
    pub kind: u16,
    /// Payload without header and padding.
    pub data: &'a [u8],
}

/// The attributes of a message or a nest, in order. The iterator ends after an error.
pub fn attrs(bytes: &[u8]) -> Attrs<'_> {
    Attrs { rest: bytes }
}

/// See [`attrs`].
#[derive(Debug, Clone)]
pub struct Attrs<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Attrs<'a> {
    type Item = Result<Attr<'a>, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let &[l0, l1, k0, k1, ..] = self.rest else {
            return self.fail("a whole attribute header of 4 bytes");
        };
        let (len, kind) = (usize::from(u16::from_ne_bytes([l0, l1])), u16::from_ne_bytes([k0, k1]));
        if len < HEADER {
            return self.fail("an attribute length of 4 or more");
        }
        let Some(data) = self.rest.get(HEADER..len) else {
            return self.fail("an attribute that ends within the message");
        };
        // The padding of the last attribute may be missing.
        self.rest = self.rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(Ok(Attr { kind: kind & !FLAGS, data }))
    }
}

impl Attrs<'_> {
    fn fail<T>(&mut self, expected: &'static str) -> Option<Result<T, ParseError>> {
        let head = &self.rest[..self.rest.len().min(16)];
        self.rest = &[];
        Some(Err(ParseError::new(WHAT, hex(head), expected)))
    }
}

impl<'a> Attr<'a> {
    fn bad(&self, expected: &'static str) -> ParseError {
        let head = &self.data[..self.data.len().min(16)];
        ParseError::new(WHAT, format!("{} bytes [{}] in attribute {}", self.data.len(), hex(head), self.kind), expected)
    }

    /// The payload as a number of 8 bits. Any other length is an error.
    pub fn u8(&self) -> Result<u8, ParseError> {
        match self.data {
            &[b] => Ok(b),
            _ => Err(self.bad("1 byte")),
        }
    }

    /// The payload as a number of 16 bits in host byte order. Any other length is an error.
    pub fn u16(&self) -> Result<u16, ParseError> {
        self.data.try_into().map(u16::from_ne_bytes).map_err(|_| self.bad("2 bytes"))
    }

    /// The payload as a number of 32 bits in host byte order. Any other length is an error.
    pub fn u32(&self) -> Result<u32, ParseError> {
        self.data.try_into().map(u32::from_ne_bytes).map_err(|_| self.bad("4 bytes"))
    }

    /// The payload as a signed number of 32 bits in host byte order. Any other length is an error.
    pub fn i32(&self) -> Result<i32, ParseError> {
        self.data.try_into().map(i32::from_ne_bytes).map_err(|_| self.bad("4 bytes"))
    }

    /// A `uint`: 4 or 8 bytes, as the kernel chooses.
    pub fn uint(&self) -> Result<u64, ParseError> {
        if let Ok(b) = self.data.try_into() {
            return Ok(u64::from(u32::from_ne_bytes(b)));
        }
        self.data.try_into().map(u64::from_ne_bytes).map_err(|_| self.bad("4 or 8 bytes"))
    }

    /// Text up to the first NUL. Bytes that are not UTF-8 are replaced, because names may contain any byte.
    pub fn str(&self) -> Result<String, ParseError> {
        let end = self.data.iter().position(|&b| b == 0).unwrap_or(self.data.len());
        Ok(String::from_utf8_lossy(&self.data[..end]).into_owned())
    }

    /// A table of 32-bit numbers.
    pub fn u32s(&self) -> Result<Vec<u32>, ParseError> {
        let (words, rest) = self.data.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(self.bad("a multiple of 4 bytes"));
        }
        Ok(words.iter().map(|&w| u32::from_ne_bytes(w)).collect())
    }

    /// Attributes within this one.
    pub fn nested(&self) -> Attrs<'a> {
        attrs(self.data)
    }
}

/// Builds attributes, padded, in host byte order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Builder {
    bytes: Vec<u8>,
}

/// A payload that does not fit in one attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong {
    /// Type of the attribute.
    pub kind: u16,
    /// Length of the payload; at most [`MAX_PAYLOAD`] fits.
    pub bytes: usize,
}

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes do not fit in netlink attribute {} (at most {MAX_PAYLOAD})", self.bytes, self.kind)
    }
}

impl std::error::Error for TooLong {}

impl From<TooLong> for ParseError {
    fn from(e: TooLong) -> Self {
        ParseError::new(WHAT, e.to_string(), "a shorter payload")
    }
}

impl Builder {
    /// A builder without attributes.
    pub fn new() -> Self {
        Self::default()
    }

    fn put(&mut self, kind: u16, data: &[u8]) -> Result<&mut Self, TooLong> {
        let len = u16::try_from(HEADER + data.len()).map_err(|_| TooLong { kind, bytes: data.len() })?;
        self.bytes.extend_from_slice(&len.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(data);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        Ok(self)
    }

    /// At most 8 bytes, which always fit.
    fn small<const N: usize>(&mut self, kind: u16, data: [u8; N]) -> &mut Self {
        const { assert!(N <= 8) };
        self.bytes.extend_from_slice(&((HEADER + N) as u16).to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(&data);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    /// Appends a number of 8 bits.
    pub fn u8(&mut self, kind: u16, value: u8) -> &mut Self {
        self.small(kind, [value])
    }

    /// Appends a number of 16 bits in host byte order.
    pub fn u16(&mut self, kind: u16, value: u16) -> &mut Self {
        self.small(kind, value.to_ne_bytes())
    }

    /// Appends a number of 32 bits in host byte order.
    pub fn u32(&mut self, kind: u16, value: u32) -> &mut Self {
        self.small(kind, value.to_ne_bytes())
    }

    /// Appends a number of 64 bits in host byte order.
    pub fn u64(&mut self, kind: u16, value: u64) -> &mut Self {
        self.small(kind, value.to_ne_bytes())
    }

    /// An attribute without payload.
    pub fn flag(&mut self, kind: u16) -> &mut Self {
        self.small(kind, [])
    }

    /// Appends text with a terminating NUL.
    pub fn string(&mut self, kind: u16, value: &str) -> Result<&mut Self, TooLong> {
        let mut data = Vec::with_capacity(value.len() + 1);
        data.extend_from_slice(value.as_bytes());
        data.push(0);
        self.put(kind, &data)
    }

    /// Appends bytes as they are.
    pub fn binary(&mut self, kind: u16, value: &[u8]) -> Result<&mut Self, TooLong> {
        self.put(kind, value)
    }

    /// Appends an array of 32-bit numbers in host byte order, without a header for each.
    pub fn u32s(&mut self, kind: u16, values: &[u32]) -> Result<&mut Self, TooLong> {
        let data: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
        self.put(kind, &data)
    }

    /// Appends `inner` as a nest, with the nested flag that the kernel's strict parsers require.
    pub fn nested(&mut self, kind: u16, inner: &Builder) -> Result<&mut Self, TooLong> {
        self.put(kind | NESTED, &inner.bytes)
    }

    /// The attributes, each padded to a multiple of 4 bytes.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Lower-case hexadecimal without separators.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|b| [DIGITS[usize::from(b >> 4)] as char, DIGITS[usize::from(b & 15)] as char]).collect()
}

/// The bytes of a hexadecimal text. Colons and dashes between bytes are ignored.
pub fn unhex(text: &str) -> Result<Vec<u8>, ParseError> {
    let bad = || ParseError::new("hexadecimal bytes", text, "two hexadecimal digits a byte");
    let digits: Vec<u8> = text.trim().bytes().filter(|b| !matches!(b, b':' | b'-')).collect();
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(bad());
    }
    let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
    let byte = |&[a, b]: &[u8; 2]| Some(digit(a)? << 4 | digit(b)?);
    pairs.iter().map(|pair| byte(pair).ok_or_else(bad)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_and_reads() {
        let mut inner = Builder::new();
        inner.u8(1, 7).flag(2);
        let mut b = Builder::new();
        b.u32(5, 0x0102_0304).u64(6, u64::MAX).u16(7, 9);
        b.string(3, "eth0").unwrap().nested(4, &inner).unwrap();
        let bytes = b.finish();
        assert_eq!(bytes.len() % 4, 0);
        let got: Vec<Attr> = attrs(&bytes).map(Result::unwrap).collect();
        assert_eq!(got.iter().map(|a| a.kind).collect::<Vec<_>>(), [5, 6, 7, 3, 4]);
        assert_eq!((got[0].u32().unwrap(), got[0].uint().unwrap()), (0x0102_0304, 0x0102_0304));
        assert_eq!((got[1].uint().unwrap(), got[2].u16().unwrap()), (u64::MAX, 9));
        assert_eq!(got[3].str().unwrap(), "eth0");
        let nest: Vec<Attr> = got[4].nested().map(Result::unwrap).collect();
        assert_eq!((nest[0].u8().unwrap(), nest[1].data.len()), (7, 0));
        assert!(got[0].u8().is_err() && got[0].u16().is_err() && got[3].u32s().is_err());
    }

    #[test]
    fn broken_lengths_end_the_walk_with_an_error() {
        for bad in [&[1][..], &[0, 0, 1, 0], &[3, 0, 1, 0], &[9, 0, 1, 0, 1, 2, 3, 4], &[255, 255, 1, 0]] {
            let mut it = attrs(bad);
            assert!(it.next().unwrap().is_err(), "{bad:?}");
            assert!(it.next().is_none());
        }
        // One byte of payload without padding at the very end.
        assert_eq!(attrs(&[5, 0, 1, 0, 9]).next().unwrap().unwrap().data, [9]);
    }

    #[test]
    fn a_value_that_does_not_fit_is_reported() {
        let mut b = Builder::new();
        assert!(b.binary(1, &vec![0; MAX_PAYLOAD]).is_ok());
        let e = b.u32s(2, &vec![0; 16_384]).unwrap_err();
        assert_eq!((e.kind, e.bytes), (2, 65_536));
    }

    #[test]
    fn hexadecimal() {
        assert_eq!(hex(&[0, 0x5a, 255]), "005aff");
        assert_eq!(unhex("00:5a:FF\n").unwrap(), [0, 0x5a, 255]);
        assert!(unhex("0").is_err() && unhex("0g").is_err());
    }
}
