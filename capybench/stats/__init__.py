"""Statistics of a run: pure functions on arrays, seeded, without any knowledge of files or tables.

`estimators` has what one cell says by itself, `joint` what is decided over all cells of a family,
`stored` what runs of different sessions say, `power` what a number of blocks can see, `pace` what
the probes beside the samples say about the machine, `student` the t distribution that planning
needs. The unit of replication is a fresh process: every function takes one value a process, never
pooled samples. Same values and seed, byte-identical results.
"""

from .estimators import (
    CONFIDENCE,
    ENUMERATED_BLOCKS,
    MAD_SCALE,
    MIN_BLOCKS,
    SAMPLED_FLIPS,
    Floats,
    Interval,
    Ratio,
    median,
    median_interval,
    modes,
    outliers,
    paired_ratio,
    quantile_shown,
    scaled_mad,
    sign_flip_interval,
    two_levels,
)
from .joint import (
    Joint,
    benjamini_hochberg,
    correction_reason,
    equivalence_p,
    geometric_mean,
    holm,
    max_t,
    noise_floor,
    sign_flip_p,
    smallest_p,
)
from .pace import Pace, PaceRule, classify_pair, classify_pairs, pace_of
from .power import blocks_needed, detectable_effect, family_quantile, smallest_effect
from .stored import (
    DEFAULT_NOISE,
    MIN_SESSIONS,
    StoredRatios,
    permuted_sessions,
    session_noise,
    stored_geometric_mean,
    stored_ratios,
)
from .student import t_quantile, t_tail

__all__ = [
    "CONFIDENCE",
    "DEFAULT_NOISE",
    "ENUMERATED_BLOCKS",
    "MAD_SCALE",
    "MIN_BLOCKS",
    "MIN_SESSIONS",
    "SAMPLED_FLIPS",
    "Floats",
    "Interval",
    "Joint",
    "Pace",
    "PaceRule",
    "Ratio",
    "StoredRatios",
    "benjamini_hochberg",
    "blocks_needed",
    "classify_pair",
    "classify_pairs",
    "correction_reason",
    "detectable_effect",
    "equivalence_p",
    "family_quantile",
    "geometric_mean",
    "holm",
    "max_t",
    "median",
    "median_interval",
    "modes",
    "noise_floor",
    "outliers",
    "pace_of",
    "paired_ratio",
    "permuted_sessions",
    "quantile_shown",
    "scaled_mad",
    "session_noise",
    "sign_flip_interval",
    "sign_flip_p",
    "smallest_effect",
    "smallest_p",
    "stored_geometric_mean",
    "stored_ratios",
    "t_quantile",
    "t_tail",
    "two_levels",
]
