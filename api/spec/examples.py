"""One example for each operation of the OpenAPI document, declared beside its route.

A test runs them in this order, so that what an example needs stands above it.
"""

from api.native.examples import Example
from api.rest.route_modules import ROUTE_MODULES
from api.sse import endpoint as events

EXAMPLES: dict[str, Example] = {
    operation: example
    for module in (*ROUTE_MODULES, events)
    for operation, example in module.EXAMPLES.items()
}
