"""Pure: `[auth]` of config.toml, as the Auth service takes it. Defaults are those of `AuthSettings`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from joserfc.errors import JoseError

from toft.migrate.glob import normalise
from toft.migrate.keys import Keys
from toft.migrate.notice import info
from toft.migrate.toml import as_table
from toft.protocol.worker import (
    AuthHook,
    AuthKeys,
    AuthMailTemplate,
    AuthProvider,
    AuthRateLimits,
    AuthSettings,
    AuthSmtp,
    JwtKey,
)
from toft.tokens.jwt import KeyRing

#: what the Supabase CLI asks for, too
_SHORTEST_SECRET = 16


def read_auth(keys: Keys, files: Mapping[str, bytes]) -> AuthSettings:
    """files: of the bundle; mail templates lie there."""
    default = AuthSettings()
    _say_what_is_left_out(keys)
    return AuthSettings(
        enabled=keys.flag("auth.enabled", True),
        keys=_keys(keys, files),
        site_url=keys.text("auth.site_url", default.site_url),
        additional_redirect_urls=keys.texts(
            "auth.additional_redirect_urls", default.additional_redirect_urls
        ),
        jwt_expiry_seconds=keys.number("auth.jwt_expiry", default.jwt_expiry_seconds, least=1),
        jwt_issuer=keys.text("auth.jwt_issuer", default.jwt_issuer),
        enable_signup=keys.flag("auth.enable_signup", default.enable_signup),
        enable_anonymous_sign_ins=keys.flag(
            "auth.enable_anonymous_sign_ins", default.enable_anonymous_sign_ins
        ),
        enable_manual_linking=keys.flag("auth.enable_manual_linking", default.enable_manual_linking),
        minimum_password_length=keys.number("auth.minimum_password_length", default.minimum_password_length),
        password_requirements=keys.text("auth.password_requirements", default.password_requirements),
        enable_refresh_token_rotation=keys.flag(
            "auth.enable_refresh_token_rotation", default.enable_refresh_token_rotation
        ),
        refresh_token_reuse_interval_seconds=keys.number(
            "auth.refresh_token_reuse_interval", default.refresh_token_reuse_interval_seconds
        ),
        session_timebox_seconds=keys.duration("auth.sessions.timebox", 0) or None,
        session_inactivity_seconds=keys.duration("auth.sessions.inactivity_timeout", 0) or None,
        email_enable_signup=keys.flag("auth.email.enable_signup", default.email_enable_signup),
        email_enable_confirmations=keys.flag(
            "auth.email.enable_confirmations", default.email_enable_confirmations
        ),
        email_double_confirm_changes=keys.flag(
            "auth.email.double_confirm_changes", default.email_double_confirm_changes
        ),
        email_secure_password_change=keys.flag(
            "auth.email.secure_password_change", default.email_secure_password_change
        ),
        email_max_frequency_seconds=keys.duration(
            "auth.email.max_frequency", default.email_max_frequency_seconds
        ),
        email_otp_length=keys.number("auth.email.otp_length", default.email_otp_length, least=6),
        email_otp_expiry_seconds=keys.number(
            "auth.email.otp_expiry", default.email_otp_expiry_seconds, least=1
        ),
        mail_templates=dict(_mail_templates(keys, files)),
        smtp=_smtp(keys),
        sms_enable_signup=keys.flag("auth.sms.enable_signup", default.sms_enable_signup),
        # ours: upstream's servers without a provider fail, and some tests want just that
        sms_provider="mailbox" if keys.flag("auth.sms.mailbox", True) else "none",
        sms_enable_confirmations=keys.flag("auth.sms.enable_confirmations", default.sms_enable_confirmations),
        sms_template=keys.text("auth.sms.template", default.sms_template),
        sms_max_frequency_seconds=keys.duration("auth.sms.max_frequency", default.sms_max_frequency_seconds),
        sms_test_otp={
            phone: keys.text(("auth", "sms", "test_otp", phone), "")
            for phone in keys.table("auth.sms.test_otp")
        },
        mfa_max_enrolled_factors=keys.number(
            "auth.mfa.max_enrolled_factors", default.mfa_max_enrolled_factors
        ),
        mfa_totp_enroll_enabled=keys.flag("auth.mfa.totp.enroll_enabled", default.mfa_totp_enroll_enabled),
        mfa_totp_verify_enabled=keys.flag("auth.mfa.totp.verify_enabled", default.mfa_totp_verify_enabled),
        mfa_phone_otp_length=keys.number("auth.mfa.phone.otp_length", default.mfa_phone_otp_length, least=6),
        mfa_phone_enroll_enabled=keys.flag("auth.mfa.phone.enroll_enabled", default.mfa_phone_enroll_enabled),
        mfa_phone_verify_enabled=keys.flag("auth.mfa.phone.verify_enabled", default.mfa_phone_verify_enabled),
        hooks=dict(_hooks(keys)),
        rate_limits=_rate_limits(keys),
        external=dict(_providers(keys)),
        oauth_server_enabled=keys.flag("auth.oauth_server.enabled", default.oauth_server_enabled),
        oauth_server_allow_dynamic_registration=keys.flag(
            "auth.oauth_server.allow_dynamic_registration", default.oauth_server_allow_dynamic_registration
        ),
        oauth_server_authorization_path=keys.text(
            "auth.oauth_server.authorization_url_path", default.oauth_server_authorization_path
        ),
    )


def _keys(keys: Keys, files: Mapping[str, bytes]) -> AuthKeys:
    secret = keys.text("auth.jwt_secret", "")
    if secret and len(secret) < _SHORTEST_SECRET:
        keys.say("auth.jwt_secret", f"{{key}} is shorter than {_SHORTEST_SECRET} characters; it is not used")
        secret = ""
    return AuthKeys(
        jwt_secret=secret,
        anon_key=keys.text("auth.anon_key", ""),
        service_role_key=keys.text("auth.service_role_key", ""),
        publishable_key=keys.text("auth.publishable_key", ""),
        secret_key=keys.text("auth.secret_key", ""),
        signing=_signing_keys(keys, files),
    )


def _signing_keys(keys: Keys, files: Mapping[str, bytes]) -> tuple[JwtKey, ...]:
    """The private JWKs of the file that is named, relative to supabase/; the first one signs."""
    path = ("auth", "signing_keys_path")
    name = keys.text(path, "")
    if not name:
        return ()
    raw = files.get(normalise(f"supabase/{name}"))
    if raw is None:
        keys.say(path, f"there is no file {name}; the lease has keys of its own")
        return ()
    try:
        found = msgspec.json.decode(raw, type=list[dict[str, Any]])
        made = tuple(_signing_key(jwk, signs=at == 0) for at, jwk in enumerate(found))
        KeyRing("only to see whether they are keys", made)
    except (msgspec.MsgspecError, ValueError, KeyError, TypeError, JoseError):
        keys.say(path, f"{name} is no JSON array of private keys (JWK); the lease has keys of its own")
        return ()
    return made


def _signing_key(jwk: dict[str, Any], *, signs: bool) -> JwtKey:
    alg = jwk.get("alg") or {"EC": "ES256", "RSA": "RS256", "OKP": "EdDSA"}.get(jwk["kty"], "HS256")
    secret = jwk.get("k") if jwk["kty"] == "oct" else jwk.get("d")
    if not secret:
        raise ValueError("a public key signs nothing")
    return JwtKey(kid=str(jwk["kid"]), alg=str(alg), jwk=msgspec.json.encode(jwk).decode(), signs=signs)


def _enabled(keys: Keys, table: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Name and path of the tables in a table that are switched on."""
    for name, value in keys.table(table).items():
        path = (*table.split("."), name)
        if as_table(value) is not None and keys.flag((*path, "enabled"), False):
            yield name, path


def _hooks(keys: Keys) -> Iterator[tuple[str, AuthHook]]:
    for name, path in _enabled(keys, "auth.hook"):
        secrets = keys.text((*path, "secrets"), "")
        yield (
            name,
            AuthHook(
                uri=keys.text((*path, "uri"), ""),
                secrets=tuple(secret for secret in secrets.split("|") if secret),
            ),
        )


def _rate_limits(keys: Keys) -> AuthRateLimits:
    default = AuthRateLimits()
    limits = AuthRateLimits(
        enforce=keys.flag("auth.rate_limit.enforce", False),
        **{
            name: keys.number(f"auth.rate_limit.{name}", getattr(default, name))
            for name in AuthRateLimits.__struct_fields__
            if name != "enforce"
        },
    )
    if not limits.enforce and limits != default:
        words = "a lease does not enforce {key}, unless it says `enforce = true`"
        keys.say("auth.rate_limit", words, info)
    return limits


def _smtp(keys: Keys) -> AuthSmtp | None:
    """The mail server, when it is switched on and complete; whoever has none reads the mailbox."""
    path = "auth.email.smtp"
    host = keys.text(f"{path}.host", "")
    # a table without `enabled` is switched on, as with the CLI
    if not host or not keys.flag(f"{path}.enabled", True):
        return None
    password = keys.text(f"{path}.pass", "")
    if password.startswith("env("):
        keys.say(f"{path}.pass", "{key} is not known, so mails go to the mailbox only")
        return None
    return AuthSmtp(
        host=host,
        port=keys.number(f"{path}.port", 587, least=1),
        user=keys.text(f"{path}.user", ""),
        password=password,
        admin_email=keys.text(f"{path}.admin_email", "admin@email.com"),
        sender_name=keys.text(f"{path}.sender_name", "Admin"),
    )


def _say_what_is_left_out(keys: Keys) -> None:
    for path, words in _LEFT_OUT.items():
        if keys.flag(path, False):
            keys.say(path, words, info)
    for name in keys.table("auth.third_party"):
        if keys.flag(("auth", "third_party", name, "enabled"), False):
            keys.say(("auth", "third_party", name), "{key}: tokens of other issuers are not accepted", info)


_LEFT_OUT = {
    "auth.captcha.enabled": "CAPTCHAs are not asked for in a lease",
    "auth.web3.solana.enabled": "signing in by wallet is not there",
    "auth.web3.ethereum.enabled": "signing in by wallet is not there",
    "auth.passkey.enabled": "passkeys are not there",
    "auth.mfa.web_authn.enroll_enabled": "second factors by WebAuthn are not there",
}


def _providers(keys: Keys) -> Iterator[tuple[str, AuthProvider]]:
    for name, path in _enabled(keys, "auth.external"):
        provider = AuthProvider(
            client_id=",".join(keys.texts((*path, "client_id"), ())),
            secret=keys.text((*path, "secret"), ""),
            redirect_uri=keys.text((*path, "redirect_uri"), ""),
            url=keys.text((*path, "url"), ""),
            skip_nonce_check=keys.flag((*path, "skip_nonce_check"), False),
            email_optional=keys.flag((*path, "email_optional"), False),
        )
        if provider.is_played:
            keys.say((*path, "secret"), f"{name} has no secret: Toft's test provider stands in for it", info)
        yield name, provider


def _mail_templates(keys: Keys, files: Mapping[str, bytes]) -> Iterator[tuple[str, AuthMailTemplate]]:
    """The paths of templates start at the project, those of notifications at supabase/, as with the CLI."""
    for kind in keys.table("auth.email.template"):
        yield kind, _mail_template(keys, ("auth", "email", "template", kind), "", files)
    for kind, path in _enabled(keys, "auth.email.notification"):
        yield kind, _mail_template(keys, path, "supabase/", files)


def _mail_template(
    keys: Keys, path: tuple[str, ...], base: str, files: Mapping[str, bytes]
) -> AuthMailTemplate:
    subject = keys.text((*path, "subject"), "")
    content = keys.text((*path, "content"), "")
    file = keys.text((*path, "content_path"), "")
    if file and not content:
        raw = files.get(normalise(base + file))
        if raw is None:
            keys.say((*path, "content_path"), f"there is no file {file}; the default text is used")
        else:
            content = raw.decode("utf-8-sig", "replace")
    return AuthMailTemplate(subject, content)
