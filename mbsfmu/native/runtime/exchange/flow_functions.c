/* What equations for somebody else's solver are made of, and what they give. */
#if KEEPS_JACOBIAN
#include "flow_jacobian.c"
#endif
#include FORMULATION_FILE

typedef char point_has_room[POINT == SIZE ? 1 : -1];

const FlowFunctions flow_functions = {
    pack,
    pack_rates,
    rates_of,
    reach,
    describe,
    loops_closed,
#if KEEPS_JACOBIAN
    find_jacobian,
    find_input_jacobian,
#endif
#if CHANGES_KNOWN
    find_change,
#endif
};
