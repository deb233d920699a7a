"""Errors of topics, their routes and requests."""

from storage.domain.errors.codes import ErrorCode
from storage.domain.errors.error import MillstreamError, ValidationFailed


class MatchInvalid(ValidationFailed):
    """The match is invalid."""

    code = ErrorCode.MATCH_INVALID


class TopicNotFound(MillstreamError):
    """No topic has this name."""

    code = ErrorCode.TOPIC_NOT_FOUND


class TopicReadOnly(MillstreamError):
    """The source of the topic is a stream or a queue; append or send to that instead."""

    code = ErrorCode.TOPIC_READ_ONLY


class RouteNotFound(MillstreamError):
    """The topic has no route of this name."""

    code = ErrorCode.ROUTE_NOT_FOUND


class TooManyRoutes(MillstreamError):
    """The topic has the maximum number of routes, or reads its history for too many targets."""

    code = ErrorCode.ROUTES_LIMIT


class RouteCycle(MillstreamError):
    """The route would bring messages back to its own topic."""

    code = ErrorCode.ROUTE_CYCLE


class RouteOwned(MillstreamError):
    """The queue or webhook belongs to a route, with which it is created, changed and deleted."""

    code = ErrorCode.ROUTE_OWNED


class Unroutable(MillstreamError):
    """No route takes the message, and the topic refuses such messages."""

    code = ErrorCode.UNROUTABLE


class FanOutTooLarge(MillstreamError):
    """The size of the message times the number of routes that take it exceeds the limit."""

    code = ErrorCode.FAN_OUT_TOO_LARGE


class RequestNotFound(MillstreamError):
    """The request was not made in this namespace, or its replies have expired."""

    code = ErrorCode.REQUEST_NOT_FOUND


class ReplyTooLate(MillstreamError):
    """The request's deadline has passed."""

    code = ErrorCode.REPLY_TOO_LATE


class ReplyTaken(MillstreamError):
    """The request already has as many replies as it accepts."""

    code = ErrorCode.REPLY_TAKEN
