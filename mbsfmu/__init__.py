"""Multibody mechanisms and hydraulic circuits as co-simulation units of FMI 2.0 and 3.0.

A model is written once (`CoupledModel`), simulated in process, exported as functional mock-up units, run
coupled by the master, and compared: what does coupling cost?
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mbsfmu.base.higher_functions import provide

if TYPE_CHECKING:
    from mbsfmu import cosim as cosim
    from mbsfmu import models
    from mbsfmu import rules as rules
    from mbsfmu.analysis.fitting import FitResult
    from mbsfmu.analysis.fmu_fitting import fit_fmu
    from mbsfmu.analysis.fmu_linearization import linearize, root_locus_of_fmus
    from mbsfmu.analysis.gradient import (
        EndValue,
        Gradient,
        Integral,
        Largest,
        LeastSquares,
        Mean,
        Measure,
        OutputEnds,
        OutputWeights,
        RootMeanSquare,
    )
    from mbsfmu.analysis.linear_system import LinearSystem, Mode, OperatingValue
    from mbsfmu.analysis.modal_analysis import ModalAnalysis, ModeShape, RootLocus
    from mbsfmu.analysis.model_functions import FunctionArgument, ModelFunctions
    from mbsfmu.analysis.optimization import OptimizationResult
    from mbsfmu.analysis.residuals import FitSignal
    from mbsfmu.analysis.sensitivities import SensitivityResult
    from mbsfmu.base.errors import InputError, SimulationError
    from mbsfmu.comparison import Comparison, ComparisonOptions, Run, StabilityLimit, compare
    from mbsfmu.comparison.comparison import ComparisonKeywords
    from mbsfmu.comparison.recommendation import CouplingSetting, Recommendation, recommend
    from mbsfmu.comparison.reference_run import TightRun
    from mbsfmu.cosim import (
        Connection,
        Cosimulation,
        CosimulationError,
        CosimulationResult,
        CoupledJoint,
        CouplingOptions,
        JointHandle,
        SystemGraph,
        cosimulate,
    )
    from mbsfmu.cosim.control.run_statistics import RunStatistics
    from mbsfmu.cosim.runs.coupling_options import CouplingKeywords
    from mbsfmu.equations.constraints import (
        Angle,
        Gap,
        Offset,
        Relation,
        gaps,
        offsets,
        square,
        tilts,
        turned_back,
        turns,
    )
    from mbsfmu.equilibrium.model_equilibrium import Equilibrium
    from mbsfmu.exporting.coupled_export import export_coupled
    from mbsfmu.exporting.fmu_export import export
    from mbsfmu.exporting.reference_results import ReferenceDeviation, check_reference
    from mbsfmu.fmu.validation import Finding, validate
    from mbsfmu.integration.error_measure import ErrorEstimate
    from mbsfmu.integration.solver import Statistics
    from mbsfmu.io.checkpoints import Checkpoint
    from mbsfmu.io.part_files import UserParts, load_parts
    from mbsfmu.io.signals import (
        LinearSignal,
        PolynomialSignal,
        RestToRestSignal,
        SineSignal,
        SplineSignal,
        StepSignal,
        read_signal,
    )
    from mbsfmu.io.trajectory import Trajectory
    from mbsfmu.model import Beam, Cuboid, Mechanism, Point, RigidBody, along
    from mbsfmu.model.block import Block, SampledBlock
    from mbsfmu.model.body import BoxShape, CylinderShape, MeshShape, PlateShape, RodShape, SphereShape
    from mbsfmu.model.force import (
        BodyPoint,
        Force,
        ForceContext,
        JointLoad,
        JointMotion,
        Numbers,
        PointAcceleration,
        PointLoad,
        Sensor,
        SensorContext,
    )
    from mbsfmu.model.joint import ClosureEquation, Constraint, Joint, JointElement
    from mbsfmu.model.model_data import model_schema
    from mbsfmu.model.reference_types import (
        Direction,
        JointReference,
        NonNegative,
        PointOrNone,
        PointReference,
        Positive,
        Vector,
    )
    from mbsfmu.modelling import Array, Condition, DataError, Parameter, Quantity, Remark
    from mbsfmu.modelling.variables import Causality, Variability, Variable
    from mbsfmu.parts import (
        Actuator,
        AppliedForce,
        AppliedMoment,
        Bushing,
        Cylindrical,
        DeadZone,
        Differential,
        Distance,
        DistanceSensor,
        FirstOrder,
        Fixed,
        Free,
        Gain,
        Gear,
        Integrator,
        JointActuator,
        JointDrive,
        JointFriction,
        JointSensor,
        JointSpringDamper,
        JointStop,
        Limiter,
        LinearCoupling,
        LineOfAction,
        Mimic,
        OrientationSensor,
        PidController,
        Planar,
        PlaneContact,
        PointOnLine,
        PointOnPlane,
        PointSensor,
        PrescribedMotion,
        Prismatic,
        RackAndPinion,
        RateLimiter,
        Revolute,
        SampledPidController,
        SecondOrder,
        Shaft,
        Spherical,
        SpringDamper,
        Sum,
        Table,
        Table2D,
        TransferFunction,
        Universal,
    )
    from mbsfmu.rules import Rule
    from mbsfmu.simulation.run_options import RunKeywords, RunOptions
    from mbsfmu.simulation.run_result import EnsembleResult, Result
    from mbsfmu.simulation.simulation import Simulation
    from mbsfmu.studies import SobolIndices, StudyOptions, StudyResult, sweep
    from mbsfmu.studies.study_options import StudyKeywords
    from mbsfmu.system_model.coupled_model import CoupledModel
    from mbsfmu.system_model.ensemble import Ensemble
    from mbsfmu.system_model.ensemble_simulation import EnsembleSimulation, Transition
    from mbsfmu.system_model.model_overview import overview
    from mbsfmu.systems.concatenated_system import CoupledSystem
    from mbsfmu.urdf import mechanism_from_urdf
    from mbsfmu.view.live.live_server import live
    from mbsfmu.view.play.play_page import PlayPage, play
    from mbsfmu.view.plots.plot import Plot
    from mbsfmu.view.report import Circumstances, write_report
    from mbsfmu.view.scene import Animation, animate

# Loaded when asked for: what a program does not use costs it no time, and a unit on its target, which has this package,
# need not have FMPy and lxml.
_HOMES = {
    "analysis.fitting": "FitResult",
    "analysis.fmu_fitting": "fit_fmu",
    "analysis.fmu_linearization": "linearize root_locus_of_fmus",
    "analysis.gradient": "EndValue Gradient Integral Largest LeastSquares Mean Measure OutputEnds "
    "OutputWeights RootMeanSquare",
    "analysis.linear_system": "LinearSystem Mode OperatingValue",
    "analysis.modal_analysis": "ModalAnalysis ModeShape RootLocus",
    "analysis.model_functions": "FunctionArgument ModelFunctions",
    "analysis.optimization": "OptimizationResult",
    "analysis.residuals": "FitSignal",
    "analysis.sensitivities": "SensitivityResult",
    "base.errors": "InputError SimulationError",
    "comparison": "compare Comparison ComparisonOptions Run StabilityLimit",
    "comparison.comparison": "ComparisonKeywords",
    "comparison.recommendation": "CouplingSetting recommend Recommendation",
    "comparison.reference_run": "TightRun",
    "cosim": "Connection cosimulate Cosimulation CosimulationError CosimulationResult CoupledJoint CouplingOptions "
    "JointHandle SystemGraph",
    "cosim.control.run_statistics": "RunStatistics",
    "cosim.runs.coupling_options": "CouplingKeywords",
    "equations.constraints": "Angle Gap gaps Offset offsets Relation square tilts turned_back turns",
    "equilibrium.model_equilibrium": "Equilibrium",
    "exporting.coupled_export": "export_coupled",
    "exporting.fmu_export": "export",
    "exporting.reference_results": "check_reference ReferenceDeviation",
    "fmu.validation": "Finding validate",
    "integration.error_measure": "ErrorEstimate",
    "integration.solver": "Statistics",
    "io.checkpoints": "Checkpoint",
    "io.part_files": "load_parts UserParts",
    "io.signals": "LinearSignal PolynomialSignal read_signal RestToRestSignal SineSignal SplineSignal StepSignal",
    "io.trajectory": "Trajectory",
    "model": "along Beam Cuboid Mechanism Point RigidBody",
    "model.block": "Block SampledBlock",
    "model.body": "BoxShape CylinderShape MeshShape PlateShape RodShape SphereShape",
    "model.force": "BodyPoint Force ForceContext JointLoad JointMotion Numbers PointAcceleration PointLoad Sensor "
    "SensorContext",
    "model.joint": "ClosureEquation Constraint Joint JointElement",
    "model.model_data": "model_schema",
    "model.reference_types": "Direction JointReference NonNegative PointOrNone PointReference Positive Vector",
    "modelling": "Array Condition DataError Parameter Quantity Remark",
    "modelling.variables": "Causality Variability Variable",
    "parts": "Actuator AppliedForce AppliedMoment Bushing Cylindrical DeadZone Differential Distance DistanceSensor "
    "FirstOrder Fixed Free Gain Gear Integrator JointActuator JointDrive JointFriction JointSensor "
    "JointSpringDamper JointStop Limiter LinearCoupling LineOfAction Mimic OrientationSensor PidController "
    "Planar PlaneContact PointOnLine PointOnPlane PointSensor PrescribedMotion Prismatic RackAndPinion "
    "RateLimiter Revolute SampledPidController SecondOrder Shaft Spherical SpringDamper Sum Table Table2D "
    "TransferFunction Universal",
    "rules": "Rule",
    "simulation.run_options": "RunKeywords RunOptions",
    "simulation.run_result": "EnsembleResult Result",
    "simulation.simulation": "Simulation",
    "studies": "SobolIndices StudyOptions StudyResult sweep",
    "studies.study_options": "StudyKeywords",
    "system_model.coupled_model": "CoupledModel",
    "system_model.ensemble": "Ensemble",
    "system_model.ensemble_simulation": "EnsembleSimulation Transition",
    "system_model.model_overview": "overview",
    "systems.concatenated_system": "CoupledSystem",
    "urdf": "mechanism_from_urdf",
    "view.live.live_server": "live",
    "view.play.play_page": "play PlayPage",
    "view.plots.plot": "Plot",
    "view.report": "Circumstances write_report",
    "view.scene": "animate Animation",
}
_PACKAGES = ("cosim", "models", "rules")
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}
provide("play", f"mbsfmu.{_HOME_OF['play']}")  # `model.play()`, which lies below pages


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("mbsfmu")
    if name in _PACKAGES:
        return importlib.import_module(f"mbsfmu.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'mbsfmu' has no attribute '{name}'")
    value = globals()[name] = getattr(importlib.import_module(f"mbsfmu.{_HOME_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})  # not the modules that are loaded


__all__ = [
    "Actuator",
    "Angle",
    "Animation",
    "AppliedForce",
    "AppliedMoment",
    "Array",
    "Beam",
    "Block",
    "BodyPoint",
    "BoxShape",
    "Bushing",
    "Causality",
    "Checkpoint",
    "Circumstances",
    "ClosureEquation",
    "Comparison",
    "ComparisonKeywords",
    "ComparisonOptions",
    "Condition",
    "Connection",
    "Constraint",
    "Cosimulation",
    "CosimulationError",
    "CosimulationResult",
    "CoupledJoint",
    "CoupledModel",
    "CoupledSystem",
    "CouplingKeywords",
    "CouplingOptions",
    "CouplingSetting",
    "Cuboid",
    "CylinderShape",
    "Cylindrical",
    "DataError",
    "DeadZone",
    "Differential",
    "Direction",
    "Distance",
    "DistanceSensor",
    "EndValue",
    "Ensemble",
    "EnsembleResult",
    "EnsembleSimulation",
    "Equilibrium",
    "ErrorEstimate",
    "Finding",
    "FirstOrder",
    "FitResult",
    "FitSignal",
    "Fixed",
    "Force",
    "ForceContext",
    "Free",
    "FunctionArgument",
    "Gain",
    "Gap",
    "Gear",
    "Gradient",
    "InputError",
    "Integral",
    "Integrator",
    "Joint",
    "JointActuator",
    "JointDrive",
    "JointElement",
    "JointFriction",
    "JointHandle",
    "JointLoad",
    "JointMotion",
    "JointReference",
    "JointSensor",
    "JointSpringDamper",
    "JointStop",
    "Largest",
    "LeastSquares",
    "Limiter",
    "LineOfAction",
    "LinearCoupling",
    "LinearSignal",
    "LinearSystem",
    "Mean",
    "Measure",
    "Mechanism",
    "MeshShape",
    "Mimic",
    "ModalAnalysis",
    "Mode",
    "ModeShape",
    "ModelFunctions",
    "NonNegative",
    "Numbers",
    "Offset",
    "OperatingValue",
    "OptimizationResult",
    "OrientationSensor",
    "OutputEnds",
    "OutputWeights",
    "Parameter",
    "PidController",
    "Planar",
    "PlaneContact",
    "PlateShape",
    "PlayPage",
    "Plot",
    "Point",
    "PointAcceleration",
    "PointLoad",
    "PointOnLine",
    "PointOnPlane",
    "PointOrNone",
    "PointReference",
    "PointSensor",
    "PolynomialSignal",
    "Positive",
    "PrescribedMotion",
    "Prismatic",
    "Quantity",
    "RackAndPinion",
    "RateLimiter",
    "Recommendation",
    "ReferenceDeviation",
    "Relation",
    "Remark",
    "RestToRestSignal",
    "Result",
    "Revolute",
    "RigidBody",
    "RodShape",
    "RootLocus",
    "RootMeanSquare",
    "Rule",
    "Run",
    "RunKeywords",
    "RunOptions",
    "RunStatistics",
    "SampledBlock",
    "SampledPidController",
    "SecondOrder",
    "SensitivityResult",
    "Sensor",
    "SensorContext",
    "Shaft",
    "Simulation",
    "SimulationError",
    "SineSignal",
    "SobolIndices",
    "SphereShape",
    "Spherical",
    "SplineSignal",
    "SpringDamper",
    "StabilityLimit",
    "Statistics",
    "StepSignal",
    "StudyKeywords",
    "StudyOptions",
    "StudyResult",
    "Sum",
    "SystemGraph",
    "Table",
    "Table2D",
    "TightRun",
    "Trajectory",
    "TransferFunction",
    "Transition",
    "Universal",
    "UserParts",
    "Variability",
    "Variable",
    "Vector",
    "along",
    "animate",
    "check_reference",
    "compare",
    "cosimulate",
    "export",
    "export_coupled",
    "fit_fmu",
    "gaps",
    "linearize",
    "live",
    "load_parts",
    "mechanism_from_urdf",
    "model_schema",
    "models",
    "offsets",
    "overview",
    "play",
    "read_signal",
    "recommend",
    "root_locus_of_fmus",
    "rules",
    "square",
    "sweep",
    "tilts",
    "turned_back",
    "turns",
    "validate",
    "write_report",
]
