"""Base of objects with a scene: sizes of arrays, under the names that signatures of kernels use."""

from __future__ import annotations

from typing import Any

from delassus.model.description import HasModel
from delassus.step.scene import Scene


class HasScene(HasModel):
    """Something with a `scene`."""

    scene: Scene

    @property
    def model(self) -> Any:  # type: ignore[override]
        """The model of the robot."""
        return self.scene.model

    @property
    def impulse_size(self) -> int:
        """Elements of arrays of rows."""
        return self.scene.impulse_size

    @property
    def slot_size(self) -> int:
        """Elements of arrays of contacts."""
        return self.scene.slot_size

    @property
    def control_size(self) -> int:
        """Elements of arrays of controls."""
        return self.scene.control_size

    @property
    def field_rows(self) -> int:
        """Rows of the height field's grid."""
        return self.scene.field_rows

    @property
    def field_columns(self) -> int:
        """Columns of the height field's grid."""
        return self.scene.field_columns
