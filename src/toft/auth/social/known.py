"""Pure: the providers that Supabase names, where each lets people sign in, and what is asked of it."""

from __future__ import annotations

from typing import Final

import msgspec

from toft.protocol.worker import AuthProvider


class Known(msgspec.Struct, frozen=True):
    """A provider by name. `{url}`: the configured base. issuer: of those that speak OpenID Connect."""

    authorize_url: str
    scopes: str
    issuer: str = ""
    usual_url: str = ""


KNOWN: Final = {
    "apple": Known(
        "https://appleid.apple.com/auth/authorize", "email name", "https://appleid.apple.com"
    ),
    "azure": Known(
        "{url}/oauth2/v2.0/authorize", "openid", "{url}/v2.0", "https://login.microsoftonline.com/common"
    ),
    "bitbucket": Known("https://bitbucket.org/site/oauth2/authorize", "account email"),
    "discord": Known("https://discord.com/api/oauth2/authorize", "email identify"),
    "facebook": Known("https://www.facebook.com/dialog/oauth", "email", "https://www.facebook.com"),
    "figma": Known("https://www.figma.com/oauth", "current_user:read"),
    "fly": Known("https://api.fly.io/oauth/authorize", "read"),
    "github": Known("{url}/login/oauth/authorize", "user:email", usual_url="https://github.com"),
    "gitlab": Known("{url}/oauth/authorize", "read_user openid email", "{url}", "https://gitlab.com"),
    "google": Known(
        "https://accounts.google.com/o/oauth2/v2/auth", "email profile", "https://accounts.google.com"
    ),
    "kakao": Known(
        "https://kauth.kakao.com/oauth/authorize",
        "account_email profile_image profile_nickname",
        "https://kauth.kakao.com",
    ),
    "keycloak": Known("{url}/protocol/openid-connect/auth", "profile email", "{url}"),
    "linkedin_oidc": Known(
        "https://www.linkedin.com/oauth/v2/authorization",
        "openid email profile",
        "https://www.linkedin.com/oauth",
    ),
    "notion": Known("https://api.notion.com/v1/oauth/authorize", ""),
    "slack_oidc": Known(
        "https://slack.com/openid/connect/authorize", "openid email profile", "https://slack.com"
    ),
    "snapchat": Known("https://accounts.snapchat.com/accounts/oauth2/auth", ""),
    "spotify": Known("https://accounts.spotify.com/authorize", "user-read-email"),
    "twitch": Known(
        "https://id.twitch.tv/oauth2/authorize", "user:read:email", "https://id.twitch.tv/oauth2"
    ),
    "workos": Known("https://api.workos.com/sso/authorize", ""),
    "zoom": Known("https://zoom.us/oauth/authorize", ""),
}  # fmt: skip
#: what is asked of an issuer that is known by its address alone
USUAL_SCOPES: Final = "openid email profile"


def base_url(name: str, provider: AuthProvider) -> str:
    """The configured base without its slash, else the usual one."""
    known = KNOWN.get(name)
    return (provider.url or (known.usual_url if known is not None else "")).rstrip("/")


def issuer_of(name: str, provider: AuthProvider) -> str:
    """The issuer whose tokens and discovery document count; empty for one that has none."""
    known = KNOWN.get(name)
    if known is None:
        return base_url(name, provider)
    return known.issuer.replace("{url}", base_url(name, provider))


def is_supported(name: str, provider: AuthProvider) -> bool:
    """Whether it can be signed in with: a name of Supabase's list, or any issuer with its address."""
    return name in KNOWN or bool(provider.url) or provider.is_played
