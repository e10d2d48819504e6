"""What schemathesis cannot read in the OpenAPI document: that an Idempotency-Key is a request's own.

Used as BENCHMARKS.md tells, with SCHEMATHESIS_HOOKS=hooks and this folder in PYTHONPATH.
"""

import uuid

import schemathesis


@schemathesis.hook
def before_call(context, case, **kwargs):
    """Gives a request with a well-formed key one of its own; malformed keys stay, to be refused."""
    data = getattr(getattr(case.meta, "phase", None), "data", None)
    if str(getattr(data, "parameter", "")).lower() == "authorization":
        # A request that was changed would be given the token that this one is to lack.
        return
    for name, key in list((case.headers or {}).items()):
        if name.lower() == "idempotency-key" and isinstance(key, str) and 1 <= len(key) <= 255:
            case.headers[name] = str(uuid.uuid4())
