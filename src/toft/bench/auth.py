"""`toft bench auth`: what Auth costs beside bcrypt, and whether hashing gets in the way of anything."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import bcrypt

from toft.bench.clients import HttpSession
from toft.bench.ground import ground
from toft.bench.measure import Figure, distribution, percentile, single
from toft.client.services import Api
from toft.client.users import Users
from toft.protocol.bundle import Bundle
from toft.protocol.lease import Lease
from toft.protocol.worker import JwtKey
from toft.tokens.jwt import KeyRing
from toft.tokens.keys import new_secret, new_signing_key
from toft.world import SystemEntropy

#: what the issue of hashing is about: so many people sign in at once
SIGN_INS = 50
_PASSWORD = "a-long-enough-one"
_CONFIG = b"[auth]\nrefresh_token_reuse_interval = 0\n"
_SCHEMA = (
    b"create table item (id int primary key); insert into item values (1); grant select on item to anon;"
)
_READ = "/rest/v1/item?select=id&id=eq.1"
_SIGN_IN = "/auth/v1/token?grant_type=password"
_REFRESH = "/auth/v1/token?grant_type=refresh_token"


def measure(is_quick: bool, report: Callable[[str], None]) -> list[Figure]:
    """All figures of this bench."""
    rounds = 20 if is_quick else 100
    figures: list[Figure] = []
    with ground(pool_size="1", pool_cloned="0", sleep_after="0", workers="1") as land:
        files = {"supabase/config.toml": _CONFIG, "supabase/migrations/1_item.sql": _SCHEMA}
        lease = land.lease(Bundle(files, {}))
        http = HttpSession(lease.http_port)
        session = _post(http, lease, "/auth/v1/signup", email="user0@example.com", password=_PASSWORD)
        report("auth.signin")
        figures += _sign_in(http, lease, rounds)
        report("auth.refresh")
        figures.append(_refresh(http, lease, session["refresh_token"], rounds))
        report("auth.read.while_hashing")
        figures += _read_while_hashing(http, lease, rounds * 10)
        http.close()
    report("auth.verify")
    figures += _verify(rounds * 100)
    return figures


def _sign_in(http: HttpSession, lease: Lease, rounds: int) -> list[Figure]:
    """A sign-in as it is, and what it costs beside bcrypt.

    The latter by a user whose hash is bcrypt's cheapest: the rest is the same, and is not lost in the noise
    of a comparison that takes twenty times as long.
    """
    cheap = bcrypt.hashpw(_PASSWORD.encode(), bcrypt.gensalt(4))
    usual = bcrypt.hashpw(_PASSWORD.encode(), bcrypt.gensalt(10))
    email = "cheap@example.com"
    Users(Api(lease.url, lease.secret_key)).create(email, password_hash=cheap.decode())
    over: list[float] = []
    for _ in range(rounds):
        whole = _took(lambda: _post(http, lease, _SIGN_IN, email=email, password=_PASSWORD))
        over.append(whole - _took(lambda: bcrypt.checkpw(_PASSWORD.encode(), cheap)))
    bare: list[float] = []
    usually: list[float] = []
    for _ in range(rounds // 5):
        bare.append(_took(lambda: bcrypt.checkpw(_PASSWORD.encode(), usual)))
        usually.append(
            _took(lambda: _post(http, lease, _SIGN_IN, email="user0@example.com", password=_PASSWORD))
        )
    return [
        distribution("auth.signin", "ms", usually, floor=("bcrypt of cost 10", bare)),
        distribution("auth.signin.over_bcrypt", "ms", over, goal={"p50": 5}),
    ]


def _refresh(http: HttpSession, lease: Lease, token: str, rounds: int) -> Figure:
    """Each one with the token that the last one gave. The floor is a request that only reads the user."""
    samples: list[float] = []
    floor: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        session = _post(http, lease, _REFRESH, refresh_token=token)
        samples.append((time.perf_counter() - began) * 1000)
        token, bearer = session["refresh_token"], session["access_token"]
        floor.append(_took(lambda bearer=bearer: http.get("/auth/v1/user", bearer)))
    return distribution("auth.refresh", "ms", samples, floor=("GET /auth/v1/user", floor), goal={"p50": 5})


def _read_while_hashing(http: HttpSession, lease: Lease, count: int) -> list[Figure]:
    """Reads of the Data API while people sign in, beside the same reads while nobody does."""
    usual = _reads(lease, lambda done: done >= count)
    people = [HttpSession(lease.http_port) for _ in range(8)]
    is_over = threading.Event()

    def sign_in(number: int) -> None:
        own = people[number % len(people)]
        with locks[number % len(people)]:
            _post(own, lease, _SIGN_IN, email="user0@example.com", password=_PASSWORD)

    locks = [threading.Lock() for _ in people]
    with ThreadPoolExecutor(len(people)) as signing, ThreadPoolExecutor(1) as reading:
        reads = reading.submit(_reads, lease, lambda _: is_over.is_set())
        list(signing.map(sign_in, range(SIGN_INS)))
        is_over.set()
        busy = reads.result()
    for session in people:
        session.close()
    calm, pressed = percentile(usual, 0.99), percentile(busy, 0.99)
    return [
        distribution("auth.read.calm", "ms", usual),
        distribution("auth.read.while_hashing", "ms", busy),
        single(
            "auth.read.while_hashing.p99_ratio", "", pressed / calm, n=len(busy), at_most=3,
            floor=("p99 of the same reads while nobody signs in, ms", calm),
        ),
    ]  # fmt: skip


def _reads(lease: Lease, is_enough: Callable[[int], bool]) -> list[float]:
    """How long each of a row of reads takes, on one connection."""
    http = HttpSession(lease.http_port)
    samples: list[float] = []
    while not is_enough(len(samples)):
        samples.append(_took(lambda: http.get(_READ, lease.anon_key)))
    http.close()
    return samples


def _verify(rounds: int) -> list[Figure]:
    """A token that was seen before, beside one that was not."""
    entropy = SystemEntropy()
    key = new_signing_key(entropy)
    ring = KeyRing(new_secret(entropy), [JwtKey(key.kid, key.alg, key.jwk, signs=True)])
    now = time.time()
    claims = {"sub": "1", "role": "authenticated", "exp": int(now) + 3600, "iat": int(now)}
    tokens = [ring.sign({**claims, "n": number}) for number in range(min(rounds, 500))]
    cold = [_took(lambda token=token: ring.verify(token, now)) * 1000 for token in tokens]
    warm = [_took(lambda: ring.verify(tokens[0], now)) * 1000 for _ in range(rounds)]
    return [
        distribution(
            "auth.verify.warm", "us", warm, floor=("ES256 verified by the library", cold), goal={"p50": 20}
        )
    ]


def _post(http: HttpSession, lease: Lease, path: str, **members: str) -> dict[str, Any]:
    status, body = http.post(path, lease.anon_key, json.dumps(members).encode())
    if status != 200:
        raise ConnectionError(f"{path} answered {status}: {body.decode(errors='replace')}")
    return json.loads(body)


def _took(work: Callable[[], object]) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000
