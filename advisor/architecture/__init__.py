"""What a model is made of, from any description of it: a Hugging Face config.json, a catalog name or a bare size."""

from advisor.architecture.lookup import catalog_architecture, find_architecture
from advisor.architecture.read import architecture_from_config
from advisor.architecture.records import Architecture, ArchitectureError, Block, Matrix
from advisor.architecture.sizes import typical_architecture

__all__ = [
    "Architecture",
    "ArchitectureError",
    "Block",
    "Matrix",
    "architecture_from_config",
    "catalog_architecture",
    "find_architecture",
    "typical_architecture",
]
