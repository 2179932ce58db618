"""Reads the address of a PostgreSQL server, and prepares the connection to it.

An address never contains a password, so none is stored: it comes from `PGPASSWORD` or `~/.pgpass`.
A connection to another machine is encrypted, and the certificate is checked.
"""

from __future__ import annotations

import os
import re
import ssl
import stat
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import parse_qsl, unquote, urlsplit

from attrs import frozen

_PORT = 5432
_OPTIONS = frozenset({"sslmode", "sslrootcert"})
_OTHERS_MAY_READ = 0o077


_BEGINNING = re.compile(r"\s*([a-z][a-z0-9+.-]+:|postgres(ql)?//)", re.IGNORECASE)
"""A scheme, unlike the drive of a Windows path, or a mistyped one."""


def is_address(place: str) -> bool:
    """Return whether the place of a remote is meant as an address, not as a folder."""
    return _BEGINNING.match(place) is not None


class BadAddress(ValueError):
    """An unusable address; the text is a sentence for a person."""


@frozen
class Address:
    """A database on a server; `encrypted` by TLS, with the certificates in the file `trusted`.

    `trusted` None means the system's certificates.
    """

    user: str
    host: str
    port: int
    database: str
    encrypted: bool
    trusted: str | None = None

    @classmethod
    def of(cls, url: str) -> Address:
        """Read `postgresql://USER@HOST[:PORT]/DATABASE[?sslmode=…&sslrootcert=FILE]`.

        Raises `BadAddress`.
        """
        try:
            parts = urlsplit(url)
            port = parts.port or _PORT
            options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        except ValueError:
            raise BadAddress("the address has a port or options that cannot be read") from None
        if "://" not in url:
            raise BadAddress("a remote is a folder, or postgresql://… with a colon and two slashes")
        if parts.scheme not in {"postgresql", "postgres"}:
            raise BadAddress(f"{parts.scheme}: a remote is a folder or postgresql://…")
        if parts.password is not None:
            raise BadAddress("leave the password out: it comes from PGPASSWORD or ~/.pgpass")
        if not (parts.username and parts.hostname and parts.path.strip("/")):
            raise BadAddress("an address is postgresql://USER@HOST/DATABASE")
        if unknown := options.keys() - _OPTIONS:
            raise BadAddress(f"{min(unknown)}: the options are sslmode and sslrootcert")
        mode = options.get("sslmode")
        near = _is_this_machine(parts.hostname)
        if mode not in {None, "verify-full"} and not (mode == "disable" and near):
            raise BadAddress("sslmode is verify-full, or disable for a server on this machine")
        encrypted = mode == "verify-full" or (mode is None and not near)
        database = unquote(parts.path.strip("/"))
        trusted = options.get("sslrootcert")
        return cls(unquote(parts.username), parts.hostname, port, database, encrypted, trusted)

    def tls(self) -> ssl.SSLContext | None:
        """Return the context of an encrypted connection; raises `BadAddress`."""
        if not self.encrypted:
            return None
        try:
            return ssl.create_default_context(cafile=self.trusted)
        except OSError as error:
            raise BadAddress(f"the certificates in {self.trusted} cannot be read") from error

    def password(self, environment: Mapping[str, str]) -> str | None:
        """Return the password for the user, None if none is known."""
        if (given := environment.get("PGPASSWORD")) is not None:
            return given
        path = environment.get("PGPASSFILE") or os.path.expanduser("~/.pgpass")
        try:
            with open(path, encoding="utf-8") as file:
                if os.name != "nt" and os.fstat(file.fileno()).st_mode & _OTHERS_MAY_READ:
                    return None  # as libpq does
                lines = (
                    file.read().splitlines()
                    if stat.S_ISREG(os.fstat(file.fileno()).st_mode)
                    else []
                )
        except (OSError, UnicodeDecodeError):
            return None
        wanted = (self.host, str(self.port), self.database, self.user)
        for line in lines:
            fields = _fields(line)
            if len(fields) == 5 and all(  # noqa: PLR2004 - host, port, database, user, password
                given in {"*", own} for given, own in zip(fields, wanted, strict=False)
            ):
                return fields[4]
        return None


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _fields(line: str) -> list[str]:
    """Split a line of `.pgpass` at its colons; a backslash keeps the next character."""
    fields, escaped = [""], False
    for char in "" if line.startswith("#") else line:
        if escaped or char not in "\\:":
            fields[-1] += char
            escaped = False
        elif char == "\\":
            escaped = True
        else:
            fields.append("")
    return fields
