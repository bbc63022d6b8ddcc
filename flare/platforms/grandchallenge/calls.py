"""Makes calls to the platform's API, again and again where the network fails."""

from __future__ import annotations

import hashlib
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from flare.common.extras import install_remedy
from flare.common.text import printable, safe
from flare.platforms.grandchallenge.errors import PlatformError

_log = logging.getLogger(__name__)

FIRST_PAUSE_S = 1.0
"""Before a call is made again; doubled each time,"""

LONGEST_PAUSE_S = 300.0
"""up to this."""

GIVE_UP_S = 6 * 3600.0
"""So long a call is tried: a submission has 24 hours."""

TIMEOUT_S = 60.0
"""Without a word from the platform."""

TOKEN_REMEDY = (
    "Make one of a user who is among the phase's external evaluators, and put its"
    " file's name into FLARE_GC_TOKEN_FILE."
)

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the platform has said to a call that it understood."""

    status: int
    content: Any
    """As JSON; None if it is none."""
    is_certain: bool
    """Whether the call was made once: an earlier one may have been heard."""

    @property
    def reason(self) -> str:
        """Why it was refused, in the platform's words, on one line."""
        found = self.content
        if isinstance(found, dict):
            found = found.get("status") or found.get("detail") or found
        return printable(str(found))[:200].rstrip(".")


class Calls:
    """Calls to the API of a platform.

    What fails on the way, or by a fault of the platform (status 500 and above, or 429),
    is tried again after pauses that grow, and that chance makes longer or shorter, so
    that many services do not come back at the same moment.

    Parameters
    ----------
    api : str
        Address of the API, with https.
    token : str
        It is given to gcapi's client, and to nobody else.
    sleep, clock, chance : callable
        Wait for some seconds; seconds that only go forward; a number from 0 to 1.
    tries : int, optional
        So often a call is tried; for hours if not given.
    """

    def __init__(
        self,
        api: str,
        token: str,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
        tries: int | None = None,
    ) -> None:
        if not api.startswith("https://"):
            problem = f"{safe(api)}: the token is sent to no http address"
            raise PlatformError(problem, "Give the address with https:// as --api.")
        self.api = f"{api.rstrip('/')}/"
        self._token, self._tries = token, tries
        self._sleep, self._clock, self._chance = sleep, clock, chance
        self._opened: Any = None

    @property
    def mark(self) -> str:
        """The beginning of the token's SHA-256, to tell it from others."""
        return hashlib.sha256(self._token.encode()).hexdigest()[:8]

    def call(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, str] | None = None,
        json: dict[str, Any] | None = None,
    ) -> Reply:
        """Make a call until the platform answers it.

        Returns
        -------
        Reply
            Also if the platform refuses it, but not the token.

        Raises
        ------
        PlatformError
            If it does not accept the token, or cannot be reached for hours.
        """
        tried = 0

        def attempt() -> Reply:
            nonlocal tried
            tried += 1
            response = self._client().request(
                method,
                f"{self.api}{path}",
                params=params,
                json=json,
                headers=self._headers(),
            )
            self.check(response)
            return Reply(
                status=response.status_code,
                content=_json_of(response),
                is_certain=tried == 1,
            )

        return self.again(f"{method} {path}", attempt)

    def again(self, what: str, attempt: Callable[[], Found]) -> Found:
        """Try something until it does not fail on the way.

        Raises
        ------
        PlatformError
            If it fails too often, or will not do better later.
        """
        begin, pause_s = self._clock(), FIRST_PAUSE_S
        number = 0
        while True:
            number += 1
            try:
                return attempt()
            except Exception as error:
                reason = _passing_fault(error)
                if not reason and type(error).__module__.startswith("httpx"):
                    text = f"{type(error).__name__}: {printable(str(error))[:120]}"
                    problem = f"{safe(self.api)}: it cannot be used ({text})"
                    raise PlatformError(problem, "Is --api right?") from error
                if not reason:
                    raise
                if self._clock() - begin > GIVE_UP_S:
                    problem = f"{safe(self.api)}: {what}: {reason}, for hours"
                    raise PlatformError(problem) from error
                if number == self._tries:
                    problem = f"{safe(self.api)}: {what}: {reason}, {number} times"
                    raise PlatformError(problem) from error
            wait_s = pause_s * (0.5 + self._chance())
            _log.warning("%s: %s; again in %.0f s", what, reason, wait_s)
            self._sleep(wait_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def stream(self, url: str, headers: dict[str, str]) -> Any:
        """Open a file; the token goes to the platform alone, not where it leads."""
        own = self._headers() if self._is_own(url) else {}
        return self._client().stream(
            "GET", url, headers={**headers, **own}, follow_redirects=True
        )

    def check(self, response: Any) -> None:
        """Refuse an answer that says nothing of the call itself.

        Raises
        ------
        PlatformError
            If the token is not accepted.
        httpx.HTTPStatusError
            If the platform is at fault, which may pass.
        """
        status = response.status_code
        if status == 401:
            problem = f"{safe(self.api)}: it does not accept the token"
            raise PlatformError(problem, TOKEN_REMEDY)
        if status >= 500 or status == 429:
            response.raise_for_status()

    def _is_own(self, url: str) -> bool:
        """Whether an address is one of the platform."""
        return url.startswith(str(self._client().base_url.join("/")))

    def _headers(self) -> dict[str, str]:
        """What makes a request ours."""
        return {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}

    def _client(self) -> Any:
        """The platform's own client, opened when it is needed: that asks the platform.

        It verifies the certificate of the platform, and knows if it is too old for it.
        """
        if self._opened is None:
            self._opened = open_client(self.api, self._token)
        return self._opened


def open_client(api: str, token: str) -> Any:
    """The client of gcapi; it makes each call once, as we wait in our own way.

    Raises
    ------
    PlatformError
        If it is not installed, or too old for the platform.
    """
    try:
        from gcapi import Client
        from gcapi.retries import BaseRetryStrategy
    except ImportError as error:
        problem = "flare serve: gcapi is not installed"
        remedy = install_remedy("gcapi", "platform")
        raise PlatformError(problem, remedy) from error

    class Once(BaseRetryStrategy):  # type: ignore[misc, unused-ignore]
        """No call is made again by the client."""

        def get_delay(self, latest_response: object) -> None:
            """Return no pause."""

    # They would log what the platform answers to a refused request.
    for name in ("gcapi.client", "gcapi.transports", "httpx"):
        logging.getLogger(name).disabled = True
    try:
        return Client(token=token, base_url=api, timeout=TIMEOUT_S, retry_strategy=Once)
    except Exception as error:
        if type(error).__name__ == "UnsupportedVersionError":
            problem = f"{safe(api)}: gcapi is too old for it"
            remedy = "pip install --upgrade gcapi"
            raise PlatformError(problem, remedy) from error
        raise


def _passing_fault(error: Exception) -> str:
    """What has failed on the way, if it may pass; empty if not."""
    kind = type(error)
    status = getattr(getattr(error, "response", None), "status_code", 0)
    if status >= 500 or status == 429:
        return f"the platform answers with status {status}"
    if kind.__name__ in ("UnsupportedProtocol", "InvalidURL", "TooManyRedirects"):
        return ""
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return ""
    if kind.__module__.startswith("httpx") and not status:
        return f"the platform cannot be reached ({kind.__name__})"
    return ""


def _json_of(response: Any) -> Any:
    """The content of an answer; None if it is no JSON."""
    try:
        return response.json()
    except ValueError:
        return None
