"""TLS of the listener: settings, validated before anything is started.

ssl_certfile                       https
ssl_ca_certs, ssl_cert_reqs        callers present a certificate too (mTLS); their key still identifies them
"""

import ssl
from pathlib import Path

from api.cli.errors import CliError, ExitCode
from api.config.settings import Settings

CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"  # for TLS 1.2; all of TLS 1.3 are secure
_REQUIRED = {
    "none": ssl.CERT_NONE,
    "optional": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


def check_tls(settings: Settings) -> None:
    """Raise CliError for contradictory settings, and for files that are not certificates."""
    if settings.ssl_certfile is None:
        if settings.ssl_keyfile or settings.ssl_ca_certs or settings.ssl_cert_reqs != "none":
            raise _fail("ssl_certfile is required by the other ssl settings")
        return
    if settings.ssl_cert_reqs != "none" and settings.ssl_ca_certs is None:
        raise _fail(
            "ssl_cert_reqs requires client certificates: set ssl_ca_certs to the CAs that sign them"
        )
    _load(settings, settings.ssl_certfile)


def _load(settings: Settings, certfile: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    password = settings.ssl_keyfile_password
    try:
        # A password is always passed, or OpenSSL would prompt for it at the terminal.
        context.load_cert_chain(
            certfile, settings.ssl_keyfile, password.get_secret_value() if password else ""
        )
        if settings.ssl_ca_certs is not None:
            context.load_verify_locations(settings.ssl_ca_certs)
        context.set_ciphers(CIPHERS)
    except (OSError, ValueError) as error:
        raise _fail(f"cannot use ssl_certfile, ssl_keyfile or ssl_ca_certs: {error}") from None


def uvicorn_options(settings: Settings) -> list[str]:
    """Return uvicorn's TLS options.

    A password is passed by the environment, where other users do not see it.
    """
    if settings.ssl_certfile is None:
        return []
    options = [
        f"--ssl-certfile={settings.ssl_certfile}",
        f"--ssl-cert-reqs={int(_REQUIRED[settings.ssl_cert_reqs])}",
        f"--ssl-ciphers={CIPHERS}",
        "--header=strict-transport-security:max-age=31536000",
    ]
    if settings.ssl_keyfile is not None:
        options.append(f"--ssl-keyfile={settings.ssl_keyfile}")
    if settings.ssl_ca_certs is not None:
        options.append(f"--ssl-ca-certs={settings.ssl_ca_certs}")
    return options


def uvicorn_environment(settings: Settings) -> dict[str, str]:
    """Return the environment variables that go with the options."""
    password = settings.ssl_keyfile_password
    return {"UVICORN_SSL_KEYFILE_PASSWORD": password.get_secret_value()} if password else {}


def own_context() -> ssl.SSLContext:
    """Return a context for probing our own listener, whose certificate is for another name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _fail(sentence: str) -> CliError:
    return CliError(sentence, ExitCode.USAGE)
