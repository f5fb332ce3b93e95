/* MuJoCo's forward dynamics, many times in one call; another velocity each time, so that none can be left out. */
#include <mujoco/mujoco.h>

void timed(const mjModel *model, mjData *data, int repetitions) {
    const double first = data->qvel[0];
    for (int k = 0; k < repetitions; k++) {
        data->qvel[0] = first + 1e-12 * k;
        mj_forward(model, data);
    }
    data->qvel[0] = first;
}
