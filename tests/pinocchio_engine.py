"""The same mechanism in Pinocchio, its frames placed by hand."""

from __future__ import annotations

import numpy as np
import pinocchio
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from mbsfmu.model import Mechanism, RigidBody
from mbsfmu.model.mechanism import TreeJoint

Floats = NDArray[np.float64]


class PinocchioTree:
    """An open tree of rigid bodies; every joint is a composite of Pinocchio's unaligned hinges and slides.

    A joint of which the child is nearer to the ground is the inverse transformation: the elements' inverses in
    reverse order, each about the same axis the other way round.

    Parameters
    ----------
    mechanism
        The mechanism; its bodies are rigid ones.
    references
        References of joints that turn freely, in the order of the tree, shape (8 r,).
    """

    def __init__(self, mechanism: Mechanism, references: Floats | None = None) -> None:
        topology = mechanism.topology
        self._model = pinocchio.Model()
        self._model.gravity.linear = np.array(mechanism.gravity)
        self._joints: dict[str, tuple[TreeJoint, int]] = {}
        ids, frames = {"ground": 0}, {"ground": pinocchio.SE3.Identity()}  # of the body in its Pinocchio joint's frame
        for body, tree_joint in zip(topology.bodies, topology.tree, strict=True):
            assert isinstance(body, RigidBody)
            joint = tree_joint.joint
            before, after = (_place(mechanism, end) for end in (joint.parent, joint.child))
            turn = Rotation.from_rotvec(joint.orientation).as_matrix()
            start = pinocchio.SE3(np.eye(3), before)
            end = pinocchio.SE3(turn, np.zeros(3)) * pinocchio.SE3(np.eye(3), -after)
            inner = joint.parent.split(".")[0]
            elements = [(element.slides, np.array(element.axis)) for element in joint.elements]
            if tree_joint.reversed:
                start, end, inner = end.inverse(), start.inverse(), joint.child.split(".")[0]
                elements = [(slides, -axis) for slides, axis in reversed(elements)]
            rotation = outer = np.eye(3)
            if references is not None and tree_joint.reference is not None:
                pair = references.reshape(-1, 2, 4)[tree_joint.reference]
                rotation, outer = Rotation.from_quat(pair, scalar_first=True).as_matrix()
            if tree_joint.reversed:
                # The reference turns in the inner body's frame, whichever body of the joint that is.
                start = pinocchio.SE3(np.eye(3), start.translation) * pinocchio.SE3(
                    rotation @ start.rotation, np.zeros(3)
                )
                rotation, outer = np.eye(3), turn @ outer @ turn.T
            ids[body.name], frames[body.name] = ids[inner], frames[inner] * start * end
            if elements:
                composite = pinocchio.JointModelComposite()
                turns = False
                for slides, axis in elements:
                    direction = axis / np.linalg.norm(axis)
                    made = pinocchio.JointModelPrismaticUnaligned if slides else pinocchio.JointModelRevoluteUnaligned
                    turned = np.eye(3)
                    if not slides:
                        turned, rotation, turns = rotation, np.eye(3), True  # before the first hinge
                    elif turns:
                        turned, outer = outer, np.eye(3)  # behind the last hinge
                    composite.addJoint(made(*direction), pinocchio.SE3(turned, np.zeros(3)))
                ids[body.name] = self._model.addJoint(ids[inner], composite, frames[inner] * start, joint.name)
                frames[body.name] = pinocchio.SE3(outer, np.zeros(3)) * end
                self._joints[joint.name] = tree_joint, ids[body.name]
            jxy, jxz, jyz = body.products_of_inertia
            jxx, jyy, jzz = body.inertia
            tensor = np.array([[jxx, jxy, jxz], [jxy, jyy, jyz], [jxz, jyz, jzz]])
            inertia = pinocchio.Inertia(body.mass, _place(mechanism, f"{body.name}.centre"), tensor)
            self._model.appendBodyToJoint(ids[body.name], inertia, frames[body.name])
        self._bodies = {name: (ids[name], frames[name]) for name in ids}
        self._data = self._model.createData()

    def point(
        self, body: str, place: Floats, coordinates: Floats, velocities: Floats, accelerations: Floats
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return how a point of a body is and moves, in the inertial frame.

        Placement, shape (4, 4), velocity, classical acceleration, and angular velocity and acceleration one behind the
        other, shape (6,).
        """
        joint, frame = self._bodies[body]
        own = frame * pinocchio.SE3(np.eye(3), place)
        q, v, a = (self._sorted(part) for part in (coordinates, velocities, accelerations))
        pinocchio.forwardKinematics(self._model, self._data, q, v, a)
        given = self._model, self._data, joint, own, pinocchio.LOCAL_WORLD_ALIGNED
        velocity = pinocchio.getFrameVelocity(*given)
        acceleration = pinocchio.getFrameClassicalAcceleration(*given)
        turning = np.concatenate([velocity.angular, acceleration.angular])
        placement = (self._data.oMi[joint] * own).homogeneous
        return placement, velocity.linear.copy(), acceleration.linear.copy(), turning

    @property
    def order(self) -> list[int]:
        """For each coordinate of ours its place among Pinocchio's."""
        places: dict[int, int] = {}
        for tree_joint, number in self._joints.values():
            indices = tree_joint.coordinates[::-1] if tree_joint.reversed else tree_joint.coordinates
            places.update({index: self._model.joints[number].idx_q + k for k, index in enumerate(indices)})
        return [places[index] for index in range(len(places))]

    def accelerations(self, coordinates: Floats, velocities: Floats) -> Floats:
        """Return z̈ by the articulated-body algorithm, in the order of our coordinates."""
        q, v = self._sorted(coordinates), self._sorted(velocities)
        return pinocchio.aba(self._model, self._data, q, v, np.zeros(len(q)))[self.order]

    def loads(self, coordinates: Floats, velocities: Floats, accelerations: Floats) -> Floats:
        """Return what drives the joints by the recursive Newton-Euler algorithm, in the order of our coordinates."""
        q, v, a = (self._sorted(part) for part in (coordinates, velocities, accelerations))
        return pinocchio.rnea(self._model, self._data, q, v, a)[self.order]

    def mass(self, coordinates: Floats) -> Floats:
        """Return the mass matrix, column by column by the recursive Newton-Euler algorithm."""
        q, still = self._sorted(coordinates), np.zeros(len(coordinates))

        def load(accelerations: Floats) -> Floats:
            return pinocchio.rnea(self._model, self._data, q, still, accelerations).copy()

        columns = [load(unit) - load(still) for unit in np.eye(len(q))]
        return np.array(columns).T[np.ix_(self.order, self.order)]

    def transmitted(
        self, coordinates: Floats, velocities: Floats, accelerations: Floats
    ) -> dict[str, tuple[Floats, Floats]]:
        """Return for joints that move and are not reversed the child's point, and what acts on the child.

        Force and moment about the inertial origin, by the recursive Newton-Euler algorithm.
        """
        q, v, a = (self._sorted(part) for part in (coordinates, velocities, accelerations))
        pinocchio.rnea(self._model, self._data, q, v, a)
        pinocchio.forwardKinematics(self._model, self._data, q)
        result = {}
        for name, (tree_joint, number) in self._joints.items():
            if not tree_joint.reversed:
                placement = self._data.oMi[number]
                result[name] = placement.translation.copy(), placement.act(self._data.f[number]).vector.copy()
        return result

    def momentum(self, coordinates: Floats, velocities: Floats) -> Floats:
        """Return linear momentum, and angular momentum about the common centre of mass, shape (6,)."""
        q, v = self._sorted(coordinates), self._sorted(velocities)
        return pinocchio.computeCentroidalMomentum(self._model, self._data, q, v).vector.copy()

    def _sorted(self, ours: Floats) -> Floats:
        theirs = np.empty_like(ours)
        theirs[self.order] = ours
        return theirs


def _place(mechanism: Mechanism, reference: str) -> Floats:
    point, owner = mechanism.point(reference), reference.split(".", maxsplit=1)[0]
    length = {body.name: getattr(body, "length", None) for body in mechanism.bodies}.get(owner) or 0.0
    return np.array(point.position) + np.array([point.along * length, 0.0, 0.0])
