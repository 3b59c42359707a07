"""Request codes to handlers, errors to response codes. `worker.handlers` fills the table by being imported."""

import logging
from collections.abc import Callable
from typing import TypeVar

from redis.exceptions import ResponseError

from access.classes import AccessClass
from access.refusals import owner_remark, remark_of
from registry.drivers import AsyncDriver
from registry.errors import (
    BrokerBusy,
    ConfigNotFound,
    IdentityConflict,
    InvalidField,
    LimitReached,
    NotOwner,
    RegistrationRefused,
    SettingsRefused,
    StoreUnavailable,
    TopicNotFound,
)
from registry.plans import Plan
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.errors import BodyError
from worker.arguments import shown
from worker.guard import CHANGED
from worker.logs.rate_limited_log import RateLimitedLog
from worker.peer import Peer
from worker.reply import Handler, Reply, Request

HANDLERS: dict[int, Handler] = {}
NO_ROUTE = (
    "No topic route info in name server for the topic: %s\n"
    "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
)
BUSY = Reply(ResponseCode.SYSTEM_BUSY, remark="[OVERLOAD]system busy, start flow control for a while")
GO_AWAY = Reply(ResponseCode.GO_AWAY, remark="please go away")
NOT_READY = Reply(ResponseCode.SYSTEM_ERROR, remark="name server not ready")
SINGLE_TOPIC = Reply(
    ResponseCode.SYSTEM_ERROR, remark="register broker failed", ext={}, refusal="single-topic"
)
UNREGISTRATIONS_FULL = Reply(ResponseCode.SYSTEM_ERROR)

log = RateLimitedLog(logging.getLogger(__name__))
F = TypeVar("F", bound=Handler)


def handles(code: RequestCode) -> Callable[[F], F]:
    """Make a function the handler of a request code; ValueError for a code that has one."""

    def add(handler: F) -> F:
        if HANDLERS.setdefault(code, handler) is not handler:
            raise ValueError(f"{code!r} has two handlers")
        return handler

    return add


def begin(
    request: Request,
    driver: AsyncDriver,
    done: Callable[[Reply], None],
    started: Callable[[Plan[Reply]], Plan[Reply]] | None = None,
) -> None:
    """Run the handler of a request; `done` gets the reply, whatever goes wrong.

    `started` makes the plan that is run of the handler's, if that has one."""
    handler = HANDLERS.get(request.command.code)
    if handler is None:
        return done(unsupported(request.command.code))
    try:
        handled = handler(request)
    except Exception as error:
        return done(failed(request, error))
    if isinstance(handled, Reply):
        return done(handled)

    def finished(reply: Reply | None, error: Exception | None) -> None:
        done(reply if reply is not None else failed(request, error or ValueError("no reply")))

    return driver.start(handled if started is None else started(handled), finished)


def written(plan: Plan[str]) -> Plan[Reply]:
    """Return the reply to a request whose plan writes, and returns the last entry that it wrote."""
    return Reply(event_id=(yield from plan))


def unsupported(code: int) -> Reply:
    """Return the reply to a code without a handler; the blank in front is RocketMQ's."""
    return Reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=f" request type {code} not supported")


def no_route(topic: str | None) -> Reply:
    """Return TOPIC_NOT_EXIST (RocketMQ ClientRequestProcessor.getRouteInfoByTopic)."""
    return Reply(ResponseCode.TOPIC_NOT_EXIST, remark=NO_ROUTE % shown(topic))


def failure(reason: str, refusal: str = "") -> Reply:
    """Return SYSTEM_ERROR with its reason, for people; one line. `refusal` is as `Reply` has it."""
    return Reply(ResponseCode.SYSTEM_ERROR, remark=reason.partition("\n")[0], refusal=refusal)


def denied(request: Request, of_class: AccessClass, needs: str) -> Reply:
    """Return NO_PERMISSION to a caller that is known, and what it would need."""
    return Reply(
        ResponseCode.NO_PERMISSION, remark=remark_of(of_class, needs, request.origin.actor), denied=True
    )


STORE_AWAY = failure("the store cannot serve now", "store")


def _store_unavailable(request: Request, error: Exception) -> Reply:
    log.warning(
        "request %d of %s failed: %s; clients and brokers repeat it; look after the store",
        request.command.code,
        request.peer.address,
        error,
    )
    return STORE_AWAY


def _limit_reached(request: Request, error: Exception) -> Reply:
    assert isinstance(error, LimitReached)
    if request.command.code != RequestCode.REGISTER_BROKER:  # worker.answered_brokers has a line of those
        log.warning(
            "request %d of %s was refused, and what was there stays: %s; if such a size is wanted, raise the option",
            request.command.code,
            request.peer.address,
            shown(str(error)),
            kind=error.option,
        )
    return failure(str(error), error.option)


def _store_refuses(request: Request, error: Exception) -> Reply:
    log.warning(
        "request %d of %s failed, since the store refuses: %s; compare the rights of its user with docs/redis.md, and "
        "see in GET /v1/repairs whether something changes its keys",
        request.command.code,
        request.peer.address,
        shown(str(error)),
    )
    return failure(f"{type(error).__name__}: {error}", "store")


def _no_config(request: Request, error: Exception) -> Reply:
    asked = f"No config item, Namespace: {shown(request.get('namespace'))}"
    if request.command.code == RequestCode.GET_KVLIST_BY_NAMESPACE:
        return Reply(ResponseCode.QUERY_NOT_FOUND, remark=asked)
    return Reply(ResponseCode.QUERY_NOT_FOUND, remark=f"{asked} Key: {shown(request.get('key'))}", ext={})


def _not_owner(request: Request, error: Exception) -> Reply:
    assert isinstance(error, NotOwner)
    if request.command.code == RequestCode.QUERY_DATA_VERSION:
        return CHANGED
    remark = owner_remark(error.name, error.actor)
    return Reply(ResponseCode.NO_PERMISSION, remark=remark, refusal="ownership", in_the_way=error.holder)


def _identity_conflict(_: Request, error: Exception) -> Reply:
    """Code 1: the broker repeats its registration; after 16 one of 5.x would not register wholly again."""
    assert isinstance(error, IdentityConflict)
    remark = str(error)
    return Reply(ResponseCode.SYSTEM_ERROR, remark=remark, refusal="identity", in_the_way=error.holder)


def _undecodable(request: Request, error: Exception) -> Reply:
    request.unreadable("body")
    return failure(f"undecodable body: {error}", "body")


ERRORS: dict[type[Exception], Callable[[Request, Exception], Reply]] = {
    StoreUnavailable: _store_unavailable,
    TopicNotFound: lambda request, _: no_route(request.get("topic")),
    ConfigNotFound: _no_config,
    RegistrationRefused: lambda *_: SINGLE_TOPIC,
    NotOwner: _not_owner,
    IdentityConflict: _identity_conflict,
    SettingsRefused: lambda *_: Reply(
        ResponseCode.NO_PERMISSION, remark="Can not update config in black list."
    ),
    BrokerBusy: lambda _, error: failure(str(error), "busy"),
    InvalidField: lambda _, error: failure(str(error), "field"),
    LimitReached: _limit_reached,
    ResponseError: _store_refuses,
    BodyError: _undecodable,
}


def unsendable(code: int, peer: Peer, error: Exception) -> Reply:
    """Return the reply in place of one that cannot be encoded: the store has what is no UTF-8."""
    log.warning(
        "the reply to request %d of %s cannot be sent, and an error is: %s; find out what wrote to the store, only the "
        "name server may",
        code,
        peer.address,
        ascii(str(error)),
    )
    return failure("what the store has cannot be sent: it is damaged")


def failed(request: Request, error: Exception) -> Reply:
    """Return the reply to a request that raised an error."""
    for kind in type(error).__mro__:
        if kind in ERRORS:
            return ERRORS[kind](request, error)
    log.warning(
        "request %d of %s failed by a fault of this server, and was answered with an error; report it",
        request.command.code,
        request.peer.address,
        error=error,
    )
    return failure(f"{type(error).__name__}: {error}")
