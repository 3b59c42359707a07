"""The build hook of the distributions here: takes their packages from the root of the checkout."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Packages(BuildHookInterface):  # type: ignore[type-arg]
    """Adds `packages` of the hook's configuration to a wheel; an editable one finds them by `dev-mode-dirs`."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before each build; `version` is `standard` or `editable`."""
        if version == "standard":
            build_data["force_include"].update({f"../../{name}": name for name in self.config["packages"]})
