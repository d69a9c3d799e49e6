"""Static checks of Python transforms before Spark starts: syntax, function, parameters."""

import ast
from collections.abc import Sequence

from odradek.apps.pipeline.spec import Pipeline, PythonTransform
from odradek.base.errors import FatalError

_SESSION = "spark"


def check_transforms(pipeline: Pipeline) -> None:
    """Check the transforms; FatalError describes the fault. Modules are not imported, because they may need a Spark
    session."""
    known = [*pipeline.sources, *pipeline.dimensions]
    for transform in pipeline.transforms.values():
        if isinstance(transform, PythonTransform):
            try:
                text = transform.file.read_text()
            except (OSError, UnicodeDecodeError) as error:
                raise FatalError(f"{transform.file} can't be read: {error}") from None
            if fault := function_fault(text, transform.function, known):
                raise FatalError(f"{transform.file.name}{fault}")
        known.append(transform.name)


def function_fault(text: str, function: str, known: Sequence[str]) -> str | None:
    """Return the end of an error sentence, or None. Functions without a `def` are not checked."""
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        return f", line {error.lineno}: {error.msg}"
    except ValueError as error:
        return f": {error}"
    for statement in module.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == function:
            return _parameter_fault(statement, known)
    names = {node.name for node in ast.walk(module) if isinstance(node, ast.alias | ast.ClassDef)}
    names |= {node.asname for node in ast.walk(module) if isinstance(node, ast.alias) and node.asname}
    names |= {node.id for node in ast.walk(module) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    has_all = any(isinstance(node, ast.alias) and node.name == "*" for node in ast.walk(module))
    is_defined = any(isinstance(node, ast.FunctionDef) and node.name == function for node in ast.walk(module))
    return None if function in names or has_all or is_defined else f" has no function {function}"


def _parameter_fault(declared: ast.FunctionDef, known: Sequence[str]) -> str | None:
    parameters = declared.args
    for parameter in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs):
        if parameter.arg != _SESSION and parameter.arg not in known:
            there = ", ".join(known)
            return f", line {declared.lineno}: {declared.name} wants {parameter.arg!r}; declared before it are: {there}"
    return None
