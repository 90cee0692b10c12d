//! Which addresses are public: not those of this machine, nor of the networks it is in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is one of the public network.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !matches!(
        (a, b, c),
        (0 | 10 | 127, ..)              // this network, private, loopback
            | (100, 64..=127, _)        // shared by a provider's customers
            | (169, 254, _)             // link-local, where clouds keep their secrets
            | (172, 16..=31, _)         // private
            | (192, 0, 0 | 2)           // protocol assignments, documentation
            | (192, 88, 99)             // relays of 6to4
            | (192, 168, _)             // private
            | (198, 18..=19, _)         // benchmarks
            | (198, 51, 100)            // documentation
            | (203, 0, 113)             // documentation
            | (224..=255, ..) // multicast, reserved, broadcast
    )
}

/// Only 2000::/3 is given out. Of that, whatever may carry an IPv4 address elsewhere is not public,
/// whichever it carries: nobody publishes a page there.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    if let Some(carried) = address.to_ipv4_mapped() {
        return is_public_v4(carried);
    }
    // Networks without IPv4 see all of it below this prefix.
    if let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = segments {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        return is_public_v4(Ipv4Addr::new(a, b, c, d));
    }
    let given_out = (0x2000..=0x3fff).contains(&segments[0]);
    let special = match segments {
        [0x2001, second, ..] if second < 0x200 => true, // Teredo and other protocols
        [0x2001, 0xdb8, ..] => true,                    // documentation
        [0x2002, ..] => true,                           // 6to4
        [0x3fff, second, ..] if second < 0x1000 => true, // documentation
        [_, _, _, _, 0 | 0x200, 0x5efe, ..] => true,    // ISATAP
        _ => false,
    };
    given_out && !special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_machines_and_networks_are_not_public() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "127.0.0.1",
            "127.255.255.254",
            "100.64.0.1",
            "100.127.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "64:ff9b:1:ffff::8.8.8.8",
            "100::1",
            "2001::1",
            "2001:0:7f00:1::",
            "2001:db8::1",
            "2001:10::1",
            "2002:7f00:1::",
            "2002:808:808::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
            "2606:4700::5efe:7f00:1",
            "2606:4700::200:5efe:10.0.0.1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address} passed");
        }
    }

    #[test]
    fn addresses_of_the_public_network_are() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "192.169.0.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450:4001::200e",
            "2001:4860:4860::8888",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address} was refused");
        }
    }
}
