"""Serve live streams and conversions over WebSocket and HTTP.

Every option is a field of :class:`server.settings.Settings`.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from codec_core import CodecModel, __version__
from codec_core.cli.report import print_error
from codec_core.errors import CodecError, SettingError
from codec_core.processor_cores import usable_cores
from codec_core.window import parse_budget
from server.app import create_app
from server.client_address import checked_proxies
from server.language import Language
from server.process import bind, serve, url_of
from server.settings import ENVIRONMENT_PREFIX, Settings
from server.tls import tls_context
from server.tracing import start_tracing


def option_name(field: str) -> str:
    """Spell a setting as an option: ``max_sessions`` becomes ``--max-sessions``."""
    return "--" + field.replace("_", "-")


def run(**given: Any) -> None:
    """Serve live streams and conversions until stopped.

    An option goes before its environment variable, which goes before the default.
    """
    try:
        settings = read_settings(given)
        tls = tls_context(settings)
        checked_proxies(settings.trusted_proxy_list)
        if settings.tracing == "otel":
            start_tracing(__version__)
        budget, language_budget = _budget(settings, "ram_budget"), _budget(settings, "language_ram_budget")
        listener = bind(settings)
    except SettingError as error:
        print_error(error)
        raise typer.Exit(2) from error
    try:
        model = CodecModel.open(settings.model, settings.numerics, settings.threads or usable_cores(), budget)
        language = _open_language_model(settings, model, language_budget)
    except CodecError as error:
        print_error(error)
        raise typer.Exit(1) from error
    try:
        app = create_app(settings, model, language)
    except CodecError as error:
        print_error(error)
        raise typer.Exit(2) from error
    url = url_of(listener, "http" if tls is None else "https")
    serve(app, settings, listener, lambda: _announce(model, language, url), tls)


def read_settings(given: dict[str, Any]) -> Settings:
    """Take settings from options (``None`` where not given), environment and defaults.

    Raises:
        SettingError: naming the first option or variable that is not legal.

    """
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as cause:
        first = cause.errors(include_url=False)[0]
        name = str(first["loc"][0])
        where = option_name(name) if given.get(name) is not None else ENVIRONMENT_PREFIX + name.upper()
        raise SettingError(where, found=repr(first["input"]), expected=_legal(name)) from cause


def _legal(name: str) -> str:
    """Say which values a setting may have."""
    field = Settings.model_fields[name]
    if get_origin(field.annotation) is Literal:
        return " | ".join(get_args(field.annotation))
    plain = _plain_type(field.annotation)
    if plain not in (int, float):
        return "true | false" if plain is bool else "text"
    low, high = (next((getattr(one, bound) for one in field.metadata if hasattr(one, bound)), None) for bound in ("ge", "le"))
    return f"at least {low}" if high is None else f"{low} .. {high}"


def _budget(settings: Settings, name: str) -> int | None:
    text = getattr(settings, name)
    return None if text is None else parse_budget(text, option_name(name))


def _open_language_model(settings: Settings, model: CodecModel, budget: int | None) -> Language | None:
    if not settings.language_model:
        return None
    return Language.open(settings.language_model, model, settings.threads or usable_cores(), budget)


def _announce(model: CodecModel, language: Language | None, url: str) -> None:
    info = model.info
    typer.echo(f"mimi {__version__} serves on {url}")
    typer.echo(f"model {info.name} ({info.weight_class}, {info.levels} levels), {info.numerics} numerics, {info.isa}")
    if language is not None:
        talks = language.model.info
        typer.echo(f"language model {talks.name} ({talks.weight_class}, {talks.own_levels} + {talks.user_levels} levels)")


def _option(name: str, field: FieldInfo) -> inspect.Parameter:
    default = "none" if field.default is None else str(field.default)
    text = f"{field.description} [{ENVIRONMENT_PREFIX}{name.upper()}, default {default or 'empty'}]"
    declarations = [option_name(name)] + ([f"--no-{name.replace('_', '-')}"] if field.annotation is bool else [])
    declared = "/".join(declarations)
    annotation = Annotated[_plain_type(field.annotation) | None, typer.Option(declared, help=text, show_default=False)]  # type: ignore[valid-type]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _plain_type(annotation: Any) -> type:
    """Reduce an annotation of the table to the type that the command line parses; pydantic checks the rest."""
    if get_origin(annotation) is Literal:
        return str
    if isinstance(annotation, types.UnionType):
        annotation = next(one for one in get_args(annotation) if one is not types.NoneType)
    plain: type = annotation
    return plain


def _with_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a function that takes any keyword the options of the settings table."""
    options = [_option(name, field) for name, field in Settings.model_fields.items()]
    signature = inspect.Signature(options)
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__annotations__ = {option.name: option.annotation for option in options}
    return function


command = _with_options(run)
"""What ``mimi serve`` calls: the entry point ``serve`` of the group ``mimi.commands``."""
