"""Coefficients of linearly implicit Runge–Kutta (Rosenbrock) methods, L-stable and stiffly accurate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mbsfmu.tracing.workspace import Floats


@dataclass(frozen=True)
class RosenbrockMethod:
    """A method of s stages, in the form without matrix-vector products [Hairer1996, sect. IV.7].

    (1/(h γ) − J) uᵢ = f(t + αᵢ h, y + Σⱼ aᵢⱼ uⱼ) + Σⱼ cᵢⱼ uⱼ / h + γᵢ h ∂f/∂t, with j < i and J = ∂f/∂y at the
    beginning of the step. The last stage is evaluated at the solution of the embedded method, and adding its increment
    gives the solution: that increment is the estimate of the error.

    Attributes
    ----------
    name
        Its own.
    order
        Of the solution; that of the embedded one is less by one.
    diagonal
        γ.
    couplings, rate_couplings
        Rows of aᵢⱼ and cᵢⱼ for j < i, the first of them empty.
    nodes, slopes
        αᵢ and γᵢ.
    interpolation
        Rows d₁, d₂ … of shape (s,) for y(t + θ h) = (1 − θ) y₀ + θ (y₁ + (1 − θ) (d₁ + θ (d₂ + θ …)) u).
    """

    name: str
    order: int
    diagonal: float
    couplings: tuple[tuple[float, ...], ...]
    rate_couplings: tuple[tuple[float, ...], ...]
    nodes: tuple[float, ...]
    slopes: tuple[float, ...]
    interpolation: tuple[tuple[float, ...], ...]

    @property
    def stages(self) -> int:
        """Their number s."""
        return len(self.nodes)

    @cached_property
    def interpolants(self) -> Floats:
        """The rows of the interpolation as an array."""
        return np.array(self.interpolation)

    def between(self, share: float, start: Floats, end: Floats, increments: Sequence[Floats]) -> Floats:
        """Return y inside a step.

        Parameters
        ----------
        share
            θ, from 0 to 1.
        start, end
            y₀ and y₁, shape (n,).
        increments
            uᵢ, shape (s, n).
        """
        bend = np.zeros_like(start)
        for row in (self.interpolants @ np.asarray(increments))[::-1]:
            bend = row + share * bend
        return (1.0 - share) * start + share * (end + (1.0 - share) * bend)


RODAS4 = RosenbrockMethod(
    name="rodas4",
    order=4,
    diagonal=0.25,
    couplings=(
        (),
        (1.544,),
        (0.9466785280815826, 0.2557011698983284),
        (3.314825187068521, 2.896124015972201, 0.9986419139977817),
        (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950),
        (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950, 1.0),
    ),
    rate_couplings=(
        (),
        (-5.6688,),
        (-2.430093356833875, -0.2063599157091915),
        (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
        (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160),
        (8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054),
    ),
    nodes=(0.0, 0.386, 0.21, 0.63, 1.0, 1.0),
    slopes=(0.25, -0.1043, 0.1035, -0.0362, 0.0, 0.0),
    interpolation=(
        (10.12623508344586, -7.487995877610167, -34.80091861555747, -7.992771707568823, 1.025137723295662, 0.0),
        (-0.6762803392801253, 6.087714651680015, 16.43084320892478, 24.76722511418386, -6.594389125716872, 0.0),
    ),
)
"""RODAS of order 4 with 3 embedded [Hairer1996, sect. VI.4]; interpolation of order 3."""

RODAS5P = RosenbrockMethod(
    name="rodas5p",
    order=5,
    diagonal=0.21193756319429014,
    couplings=(
        (),
        (3.0,),
        (2.849394379747939, 0.45842242204463923),
        (-6.954028509809101, 2.489845061869568, -10.358996098473584),
        (2.8029986275628964, 0.5072464736228206, -0.3988312541770524, -0.04721187230404641),
        (-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256, 0.030198172008377946),
        (-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256, 0.030198172008377946, 1.0),
        (
            *(-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256, 0.030198172008377946),
            *(1.0, 1.0),
        ),
    ),
    rate_couplings=(
        (),
        (-14.155112264123755,),
        (-17.97296035885952, -2.859693295451294),
        (147.12150275711716, -1.41221402718213, 71.68940251302358),
        (165.43517024871676, -0.4592823456491126, 42.90938336958603, -5.961986721573306),
        (24.854864614690072, -3.0009227002832186, 47.4931110020768, 5.5814197821558125, -0.6610691825249471),
        (
            *(30.91273214028599, -3.1208243349937974, 77.79954646070892, 34.28646028294783, -19.097331116725623),
            -28.087943162872662,
        ),
        (
            *(37.80277123390563, -3.2571969029072276, 112.26918849496327, 66.9347231244047, -40.06618937091002),
            *(-54.66780262877968, -9.48861652309627),
        ),
    ),
    nodes=(0.0, 0.6358126895828704, 0.4095798393397535, 0.9769306725060716, 0.4288403609558664, 1.0, 1.0, 1.0),
    slopes=(
        *(0.21193756319429014, -0.42387512638858027, -0.3384627126235924, 1.8046452872882734, 2.325825639765069),
        *(0.0, 0.0, 0.0),
    ),
    interpolation=(
        (
            *(25.948786856663858, -2.5579724845846235, 10.433815404888879, -2.3679251022685204, 0.524948541321073),
            *(1.1241088310450404, 0.4272876194431874, -0.17202221070155493),
        ),
        (
            *(-9.91568850695171, -0.9689944594115154, 3.0438037242978453, -24.495224566215796, 20.176138334709044),
            *(15.98066361424651, -6.789040303419874, -6.710236069923372),
        ),
        (
            *(11.419903575922262, 2.8879645146136994, 72.92137995996029, 80.12511834622643, -52.072871366152654),
            *(-59.78993625266729, -0.15582684282751913, 4.883087185713722),
        ),
    ),
)
"""Rodas5P of order 5 with 4 embedded [Steinebach2023]; interpolation of order 4. It keeps its order for stiff systems,
unlike other Rosenbrock methods.
"""

METHODS = {method.name: method for method in (RODAS4, RODAS5P)}
"""All methods by name."""
