"""Writes the Helm chart's files of options from the catalogue: `python -m tools.chart_options`.

That is `helm/files/options.yaml`, by which templates find an option's variable, and in `helm/values.schema.json` the
definitions of `options` and `pipeline.options`, by which Helm refuses a name or a value that no process would take.
"""

import json
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from mqpipeline.options import Options as PipelineOptions
from registry.options.catalogue import AT_LEAST_ONE, AT_MOST, CATALOGUE, CHOICES, Option

HELM = Path(__file__).resolve().parent.parent / "helm"
SCHEMA, VARIABLES = HELM / "values.schema.json", HELM / "files" / "options.yaml"
HEAD = "# Option: variable. Written by `make generate`; a test compares it with the catalogue.\n"
SET_BY_CHART = frozenset(
    {
        "bindAddress",
        "listenPort",
        "httpBindAddress",
        "httpPort",
        "metricsPort",
        "rocketmqHome",
        "kvConfigPath",
        "configStorePath",
        "dataDir",
        "beatFile",
        "checkAddress",
        "accessFile",
        "proxyTrustedCidrs",
        "proxyRequired",
        "advertiseAddress",
    }
)
SET_BY_CHART_TOO = ("tls.", "redis", "rqRedis")
"""Prefixes of options that have values of their own, or are secrets."""
PIPELINE_SET_BY_CHART = frozenset({"url", "warehouse", "master", "memory"})


def offered() -> tuple[Option, ...]:
    """Return the options that the chart's `options` may have, also those without effect, for settings of Java."""
    return tuple(
        option
        for option in CATALOGUE
        if option.key not in SET_BY_CHART and not option.key.startswith(SET_BY_CHART_TOO)
    )


def variables() -> str:
    """Return the text of files/options.yaml."""
    return HEAD + "".join(f"{option.key}: {option.env}\n" for option in offered())


def schema(text: str) -> str:
    """Return the text of values.schema.json, with its definitions of options replaced."""
    whole = json.loads(text)
    whole["$defs"]["options"] = _object({option.key: _property(option) for option in offered()})
    whole["$defs"]["pipelineOptions"] = _object(
        {
            name.upper(): _pipeline_property(*get_args(hint))
            for name, hint in get_type_hints(PipelineOptions, include_extras=True).items()
            if name not in PIPELINE_SET_BY_CHART
        }
    )
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _property(option: Option) -> dict[str, Any]:
    described = {"description": option.why} if option.why else {}
    if option.type == "bool":
        return {"type": "boolean", **described}
    if option.type == "str":
        choices = {"enum": list(CHOICES[option.key])} if option.key in CHOICES else {}
        return {"type": "string", **choices, **described}
    bits = 31 if option.type == "int" else 63
    least = int(option.key in AT_LEAST_ONE) if option.group == "own" else -(1 << bits)
    return {
        "type": "integer",
        "minimum": least,
        "maximum": AT_MOST.get(option.key, (1 << bits) - 1),
        **described,
    }


def _pipeline_property(kind: Any, description: str) -> dict[str, Any]:
    """Return the schema of an option of the pipeline; lists and tables are text, as in the environment."""
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind)), "description": description}
    return {"type": {bool: "boolean", int: "integer"}.get(kind, "string"), "description": description}


if __name__ == "__main__":
    VARIABLES.write_text(variables())
    SCHEMA.write_text(schema(SCHEMA.read_text()))
