"""IP addresses as fields of objects carry them."""

import ipaddress

from applecart.embedded.field_errors import FieldError, invalid

IP_SAID = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def family_of(text: str) -> int:
    """4 or 6; 0 for text that is no address. A zone (`fe80::1%en0`) makes it none: it means something on one host only."""
    if "%" in text:
        return 0
    try:
        return ipaddress.ip_address(text).version
    except ValueError:
        return 0


def validate_ip(text: str, at: str, errors: list[FieldError]) -> None:
    if family_of(text) == 0:
        errors.append(invalid(at, text, IP_SAID))
