"""Google's CEL library, imported in one place: it ships without type information."""

from cel_expr_python import cel  # type: ignore[import-untyped]
from cel_expr_python.ext import (  # type: ignore[import-untyped]
    ext_bindings,
    ext_encoders,
    ext_math,
    ext_optional,
    ext_strings,
)

STANDARD_EXTENSIONS = (
    ext_strings.ExtStrings(),
    ext_optional.ExtOptional(),
    ext_math.ExtMath(),
    ext_bindings.ExtBindings(),
    ext_encoders.ExtEncoders(),
)

__all__ = ["STANDARD_EXTENSIONS", "cel"]
