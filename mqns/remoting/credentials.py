"""Credentials of ACL 1.0 in environment variables: options would be visible in lists of processes."""

from collections.abc import Mapping
from typing import Final

from mqns.errors import ConfigError
from mqns.remoting.acl import AclCredentials

__all__ = ["ACCESS_KEY", "SECRET_KEY", "SECURITY_TOKEN", "credentials_in"]

ACCESS_KEY: Final = "MQNS_ACCESS_KEY"
SECRET_KEY: Final = "MQNS_SECRET_KEY"
SECURITY_TOKEN: Final = "MQNS_SECURITY_TOKEN"


def credentials_in(environ: Mapping[str, str]) -> AclCredentials | None:
    """Return the credentials, None without an access key. Raises ConfigError for one without a secret."""
    access_key, secret = environ.get(ACCESS_KEY), environ.get(SECRET_KEY)
    if not access_key:
        return None
    if not secret:
        raise ConfigError(f"{ACCESS_KEY} needs the variable {SECRET_KEY}")
    return AclCredentials(access_key, secret, environ.get(SECURITY_TOKEN))
