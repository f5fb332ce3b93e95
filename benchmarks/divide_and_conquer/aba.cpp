// Pinocchio's articulated-body algorithm on a chain of equal links, many times in one call.
#include <pinocchio/multibody.hpp>

#include <pinocchio/algorithm/aba.hpp>

#include <memory>

using namespace pinocchio;

// Links of 1 m, 1 kg and 1 kg m2; hinges about Z, or about Z, Y and X in turn.
static Model chain(int links, bool spatial) {
    Model model;
    model.gravity.linear() << 0.0, -9.81, 0.0;
    const Inertia inertia(1.0, Eigen::Vector3d(0.5, 0.0, 0.0), Eigen::Matrix3d::Identity());
    SE3 place = SE3::Identity();
    JointIndex last = 0;
    for (int i = 0; i < links; i++) {
        const std::string name = "joint " + std::to_string(i);
        switch (spatial ? i % 3 : 0) {
        case 0: last = model.addJoint(last, JointModelRZ(), place, name); break;
        case 1: last = model.addJoint(last, JointModelRY(), place, name); break;
        default: last = model.addJoint(last, JointModelRX(), place, name);
        }
        model.appendBodyToJoint(last, inertia, SE3::Identity());
        place.translation() << 1.0, 0.0, 0.0;
    }
    return model;
}

extern "C" void timed(int links, int spatial, int world, const double *z, const double *w, int repetitions, double *out) {
    static Model model;
    static std::unique_ptr<Data> kept;  // making it takes longer than many evaluations
    if (model.nq != links || model.name != std::to_string(spatial)) {
        model = chain(links, spatial);
        model.name = std::to_string(spatial);
        kept = std::make_unique<Data>(model);
    }
    Data &data = *kept;
    Eigen::VectorXd q = Eigen::Map<const Eigen::VectorXd>(z, links);
    const Eigen::VectorXd v = Eigen::Map<const Eigen::VectorXd>(w, links), torque = Eigen::VectorXd::Zero(links);
    for (int k = 0; k < repetitions; k++) {
        q[0] = z[0] + 1e-12 * k;
        aba(model, data, q, v, torque, world ? Convention::WORLD : Convention::LOCAL);
    }
    Eigen::Map<Eigen::VectorXd>(out, links) = data.ddq;
}
