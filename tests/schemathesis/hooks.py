"""What schemathesis cannot read in the OpenAPI document: that an Idempotency-Key is a request's own.

Used as BENCHMARKS.md tells, with SCHEMATHESIS_HOOKS=hooks and this folder in PYTHONPATH.
"""

import uuid

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    """Gives a request with a well-formed key one of its own; malformed keys stay, to be refused."""
    key = next((value for name, value in (case.headers or {}).items() if name.lower() == "idempotency-key"), None)
    if isinstance(key, str) and 1 <= len(key) <= 255:
        kwargs["headers"] = {**(kwargs.get("headers") or {}), "Idempotency-Key": str(uuid.uuid4())}
