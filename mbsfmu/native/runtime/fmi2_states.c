/* Saved states: whose state it is, a checksum, and the state of an instance as a whole. What a host hands back is
 * taken only where it is a state of this very unit, and where everything that steps count or index by is in range:
 * a checksum tells damage from chance, not from intent. */

#define SAVED_MARK "mbsfmu\0\1" /* first bytes of every saved state; the last one is the version of this layout */

typedef struct {
    char mark[8];
    char identity[64];              /* the unit's GUID; zeros behind it */
    uint64_t size, checksum;
    State state;
} Saved;

/* A number that changes with every word of the state; the state's size is a multiple of that of a word. */
static uint64_t checksum(const State *state) {
    const char *bytes = (const char *)state;
    uint64_t sum = 14695981039346656037u;
    for (size_t i = 0; i < sizeof(State); i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        sum = (sum ^ word) * 1099511628211u;
        sum ^= sum >> 32; /* else the highest bits would meet no others */
    }
    return sum;
}

static void seal(Saved *saved, const State *state) {
    memset(saved, 0, offsetof(Saved, state));
    memcpy(saved->mark, SAVED_MARK, sizeof saved->mark);
    memcpy(saved->identity, MODEL_GUID, sizeof(MODEL_GUID));
    saved->size = sizeof(Saved);
    memcpy(&saved->state, state, sizeof(State));
    saved->checksum = checksum(state);
}

/* Whether all numbers of an array are 0 or 1. */
static int all_flags(const int *flags, int count) {
    for (int i = 0; i < count; i++) {
        if (flags[i] != 0 && flags[i] != 1) return 0;
    }
    return 1;
}

/* Whether a state is one that an instance can be in. */
static int possible(const State *state) {
    int dependent = 0;
    if (!all_flags(state->held, INPUTS) || !all_flags(state->dependent, COORDINATES)) return 0;
    for (int j = 0; j < COORDINATES; j++) dependent += state->dependent[j];
    if (!all_flags(&state->has_stop_time, 1) || !all_flags(&state->initialized, 1)) return 0;
    if (state->mode < INSTANTIATED || state->mode > TERMINATED) return 0;
    if (state->mode >= STEPPING && !state->initialized) return 0;
    if (state->step_status < fmi2OK || state->step_status > fmi2Error) return 0;
#if FORMULATION == DOUBLE_STEP
    if (state->initialized && dependent != COORDINATES - FREEDOM) return 0;
#else
    if (dependent != 0) return 0;
#endif
    const double numbers[] = {state->time, state->passed, state->stop_time, state->slope_time, state->step_size};
    if (!all_finite(numbers, (int)(sizeof numbers / sizeof *numbers))) return 0;
    return state->step_size >= SMALLEST_STEP && state->tolerance_factor > 0.0;
}

/* Why a saved state cannot be taken; NULL where it can. */
static const char *objection(const Saved *saved) {
    char identity[sizeof saved->identity] = MODEL_GUID;
    if (memcmp(saved->mark, SAVED_MARK, sizeof saved->mark) != 0) return "it is no state of a unit of this kind";
    if (memcmp(saved->identity, identity, sizeof identity) != 0) return "it is the state of another unit";
    if (saved->size != sizeof(Saved)) return "its size is not that of a state of this unit";
    if (saved->checksum != checksum(&saved->state)) return "it is damaged: its checksum does not fit";
    if (!possible(&saved->state)) return "it says what no instance can be in";
    return NULL;
}

#define REFUSE_STATE(why) return REFUSE("the saved state is refused: %s", why)

/* Make room for a saved state, or use the room of one that the host gives back; returns fmi2OK or fmi2Error. */
static fmi2Status make_room(Instance *instance, fmi2FMUstate *saved) {
    if (!saved) return REFUSE("there is no place for a saved state");
    if (*saved) {
        const char *why = objection(*saved);
        if (why) REFUSE_STATE(why);
        return fmi2OK;
    }
    *saved = malloc(sizeof(Saved));
    return *saved ? fmi2OK : REFUSE("there is no memory for a saved state");
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetFMUstate)(fmi2Component component, fmi2FMUstate *saved) {
    WITH_INSTANCE;
    if (make_room(instance, saved) != fmi2OK) return fmi2Error;
    seal(*saved, &instance->state);
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetFMUstate)(fmi2Component component, fmi2FMUstate saved) {
    WITH_INSTANCE;
    if (!saved) return REFUSE("there is no saved state");
    const char *why = objection(saved);
    if (why) REFUSE_STATE(why);
    memcpy(&instance->state, &((const Saved *)saved)->state, sizeof(State));
    instance->known = NOTHING;
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2FreeFMUstate)(fmi2Component component, fmi2FMUstate *saved) {
    WITH_INSTANCE;
    if (saved) {
        free(*saved);
        *saved = NULL;
    }
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SerializedFMUstateSize)(fmi2Component component, fmi2FMUstate saved, size_t *size) {
    WITH_INSTANCE;
    (void)saved;
    NEED(size, "the size of a saved state");
    *size = sizeof(Saved);
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SerializeFMUstate)(
    fmi2Component component, fmi2FMUstate saved, fmi2Byte bytes[], size_t size
) {
    WITH_INSTANCE;
    if (!saved) return REFUSE("there is no saved state");
    NEED(bytes, "the bytes of a saved state");
    if (size < sizeof(Saved)) return REFUSE("a saved state needs %u bytes, not %u", (unsigned)sizeof(Saved), (unsigned)size);
    const char *why = objection(saved);
    if (why) REFUSE_STATE(why);
    memcpy(bytes, saved, sizeof(Saved));
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2DeSerializeFMUstate)(
    fmi2Component component, const fmi2Byte bytes[], size_t size, fmi2FMUstate *saved
) {
    WITH_INSTANCE;
    Saved given;
    NEED(bytes, "the bytes of a saved state");
    if (size != sizeof(Saved)) {
        return REFUSE(
            "the saved state is refused: it has %u bytes; a state of this unit has %u", (unsigned)size,
            (unsigned)sizeof(Saved)
        );
    }
    memcpy(&given, bytes, sizeof given); /* the host's bytes may stand anywhere, a state must be aligned */
    const char *why = objection(&given);
    if (why) REFUSE_STATE(why);
    if (make_room(instance, saved) != fmi2OK) return fmi2Error;
    memcpy(*saved, &given, sizeof given);
    return fmi2OK;
}
