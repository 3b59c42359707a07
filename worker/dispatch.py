"""Request codes to handlers, errors to response codes. `worker.handlers` fills the table by being imported."""

import logging
from collections.abc import Callable
from typing import TypeVar

from registry.drivers import AsyncDriver
from registry.errors import (
    BrokerBusy,
    ConfigNotFound,
    InvalidField,
    RegistrationRefused,
    SettingsRefused,
    StoreUnavailable,
    TopicNotFound,
)
from remoting.codes import RequestCode, ResponseCode
from remoting.errors import BodyError
from worker.answer import Answer, Handler, Request
from worker.arguments import shown
from worker.rationed_log import RationedLog

HANDLERS: dict[int, Handler] = {}
NO_ROUTE = (
    "No topic route info in name server for the topic: %s\n"
    "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
)
BUSY = Answer(ResponseCode.SYSTEM_BUSY, remark="[OVERLOAD]system busy, start flow control for a while")
GO_AWAY = Answer(ResponseCode.GO_AWAY, remark="please go away")
NOT_READY = Answer(ResponseCode.SYSTEM_ERROR, remark="name server not ready")
UNREGISTRATIONS_FULL = Answer(ResponseCode.SYSTEM_ERROR)

log = RationedLog(logging.getLogger(__name__))
F = TypeVar("F", bound=Handler)


def handles(code: RequestCode) -> Callable[[F], F]:
    """Make a function the handler of a request code; ValueError for a code that has one."""

    def add(handler: F) -> F:
        if HANDLERS.setdefault(code, handler) is not handler:
            raise ValueError(f"{code!r} has two handlers")
        return handler

    return add


def begin(request: Request, driver: AsyncDriver, done: Callable[[Answer], None]) -> None:
    """Run the handler of a request; `done` gets the answer, whatever goes wrong."""
    handler = HANDLERS.get(request.command.code)
    if handler is None:
        return done(unsupported(request.command.code))
    try:
        made = handler(request)
    except Exception as error:
        return done(failed(request, error))
    if isinstance(made, Answer):
        return done(made)

    def finished(answer: Answer | None, error: Exception | None) -> None:
        done(answer if answer is not None else failed(request, error or ValueError("no answer")))

    return driver.start(made, finished)


def unsupported(code: int) -> Answer:
    """The answer to a code that nobody handles; the blank in front is RocketMQ's."""
    return Answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=f" request type {code} not supported")


def no_route(topic: str | None) -> Answer:
    """There is no such topic (RocketMQ ClientRequestProcessor.getRouteInfoByTopic)."""
    return Answer(ResponseCode.TOPIC_NOT_EXIST, remark=NO_ROUTE % shown(topic))


def failure(reason: str) -> Answer:
    """SYSTEM_ERROR with its reason, for people; one line."""
    return Answer(ResponseCode.SYSTEM_ERROR, remark=reason.partition("\n")[0])


STORE_AWAY = failure("the store cannot serve now")


def _store_unavailable(request: Request, error: Exception) -> Answer:
    log.warning("request %d failed: %s", request.command.code, error)
    return STORE_AWAY


def _no_config(request: Request, error: Exception) -> Answer:
    asked = f"No config item, Namespace: {shown(request.get('namespace'))}"
    if request.command.code == RequestCode.GET_KVLIST_BY_NAMESPACE:
        return Answer(ResponseCode.QUERY_NOT_FOUND, remark=asked)
    return Answer(ResponseCode.QUERY_NOT_FOUND, remark=f"{asked} Key: {shown(request.get('key'))}", ext={})


ERRORS: dict[type[Exception], Callable[[Request, Exception], Answer]] = {
    StoreUnavailable: _store_unavailable,
    TopicNotFound: lambda request, _: no_route(request.get("topic")),
    ConfigNotFound: _no_config,
    RegistrationRefused: lambda *_: Answer(
        ResponseCode.SYSTEM_ERROR, remark="register broker failed", ext={}
    ),
    SettingsRefused: lambda *_: Answer(
        ResponseCode.NO_PERMISSION, remark="Can not update config in black list."
    ),
    BrokerBusy: lambda _, error: failure(str(error)),
    InvalidField: lambda _, error: failure(str(error)),
    BodyError: lambda _, error: failure(f"undecodable body: {error}"),
}


def failed(request: Request, error: Exception) -> Answer:
    """The answer to a request that raised an error."""
    for kind in type(error).__mro__:
        if kind in ERRORS:
            return ERRORS[kind](request, error)
    log.warning("request %d of %s failed", request.command.code, request.peer.address, error=error)
    return failure(f"{type(error).__name__}: {error}")
