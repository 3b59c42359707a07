"""The WSGI callable; its import loads no web framework, because remoting workers import it too."""

import gc
from collections.abc import Iterable
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


class LazyApp:
    """The application of this process's environment, built once, by the first thread that needs it."""

    def __init__(self) -> None:
        self._lock = Lock()

    @cached_property
    def built(self) -> "WSGIApplication":
        gc.disable()  # what is loaded is no garbage, and looking through it takes an eighth of the time
        try:
            from api.app import create_app

            return create_app()
        finally:
            gc.freeze()
            gc.enable()

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        with self._lock:
            built = self.built
        return built(environ, start_response)


app = LazyApp()
