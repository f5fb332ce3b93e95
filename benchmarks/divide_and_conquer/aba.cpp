// Pinocchio's articulated-body algorithm on a tree of equal links, many times in one call.
#include <pinocchio/multibody.hpp>

#include <pinocchio/algorithm/aba.hpp>

#include <malloc.h>

using namespace pinocchio;

struct Tree {
    Model model;
    Data data;
    Eigen::VectorXd q, v, torque;
    explicit Tree(const Model &made)
        : model(made), data(model), q(neutral(model)), v(Eigen::VectorXd::Zero(model.nv)),
          torque(Eigen::VectorXd::Zero(model.nv)) {}
};

// Bodies of 1 kg and 1 kg m2, each at its place on its parent; kinds: hinges about Z, Y and X, balls, free joints.
static Model links(int bodies, const int *parents, const int *kinds, const double *places) {
    Model model;
    model.gravity.linear() << 0.0, -9.81, 0.0;
    const Inertia inertia(1.0, Eigen::Vector3d(0.5, 0.0, 0.0), Eigen::Matrix3d::Identity());
    for (int i = 0; i < bodies; i++) {
        const JointIndex parent = parents[i] + 1;
        const std::string name = "joint " + std::to_string(i);
        SE3 place = SE3::Identity();
        if (parent > 0) place.translation() = Eigen::Map<const Eigen::Vector3d>(places + 3 * i);
        JointIndex made;
        switch (kinds[i]) {
        case 0: made = model.addJoint(parent, JointModelRZ(), place, name); break;
        case 1: made = model.addJoint(parent, JointModelRY(), place, name); break;
        case 2: made = model.addJoint(parent, JointModelRX(), place, name); break;
        case 3: made = model.addJoint(parent, JointModelSpherical(), place, name); break;
        default: made = model.addJoint(parent, JointModelFreeFlyer(), place, name);
        }
        model.appendBodyToJoint(made, inertia, SE3::Identity());
    }
    return model;
}

static size_t allocated() {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

// Returns a tree, and how much memory it takes.
extern "C" Tree *tree_new(int bodies, const int *parents, const int *kinds, const double *places, size_t *bytes) {
    const size_t before = allocated();
    Tree *tree = new Tree(links(bodies, parents, kinds, places));
    *bytes = allocated() - before;
    return tree;
}

extern "C" void tree_free(Tree *tree) { delete tree; }

extern "C" void tree_move(Tree *tree, const double *q, const double *v) {
    tree->q = Eigen::Map<const Eigen::VectorXd>(q, tree->model.nq);
    tree->v = Eigen::Map<const Eigen::VectorXd>(v, tree->model.nv);
}

// Accelerations; another velocity each time, so that none can be left out.
extern "C" void timed(Tree *tree, int world, int repetitions, double *accelerations) {
    const double first = tree->v[0];
    for (int k = 0; k < repetitions; k++) {
        tree->v[0] = first + 1e-12 * k;
        aba(tree->model, tree->data, tree->q, tree->v, tree->torque, world ? Convention::WORLD : Convention::LOCAL);
    }
    tree->v[0] = first;
    Eigen::Map<Eigen::VectorXd>(accelerations, tree->model.nv) = tree->data.ddq;
}
