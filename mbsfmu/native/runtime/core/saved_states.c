/* Saved states: whose state it is, a checksum, and the state of an instance as a whole. What a host hands back is
 * taken only where it is a state of this very unit, and where everything that steps count or index by is in range:
 * a checksum tells damage from chance, not from intent. */

typedef struct {
    SavedHead head;
    State state;
} Saved;

enum { CHECKSUMS = 4 }; /* side by side, as each word of one would wait for the one before */

static uint64_t with_word(uint64_t sum, uint64_t word) {
    sum = (sum ^ word) * 1099511628211u;
    return sum ^ sum >> 32; /* else the highest bits would meet no others */
}

/* A number that changes with every word of the state; the state's size is a multiple of that of a word. */
static uint64_t checksum(const State *state) {
    const char *bytes = (const char *)state;
    const size_t words = sizeof(State) / sizeof(uint64_t), left = words % CHECKSUMS;
    uint64_t sums[CHECKSUMS], result = 14695981039346656037u;
    for (int k = 0; k < CHECKSUMS; k++) sums[k] = result;
    for (size_t i = 0; i + CHECKSUMS <= words; i += CHECKSUMS) {
        uint64_t next[CHECKSUMS];
        memcpy(next, bytes + i * sizeof(uint64_t), sizeof next);
        for (int k = 0; k < CHECKSUMS; k++) sums[k] = with_word(sums[k], next[k]);
    }
    for (size_t k = 0; k < left; k++) {
        uint64_t word;
        memcpy(&word, bytes + (words - left + k) * sizeof word, sizeof word);
        sums[k] = with_word(sums[k], word);
    }
    for (int k = 0; k < CHECKSUMS; k++) result = with_word(result, sums[k]);
    return result;
}

static void seal(Saved *saved, const State *state) {
    write_head(&saved->head, sizeof(Saved));
    memcpy(&saved->state, state, sizeof(State));
    saved->head.checksum = checksum(state);
}

/* Whether all numbers of an array are 0 or 1. */
static int all_flags(const int *flags, int count) {
    for (int i = 0; i < count; i++) {
        if (flags[i] != 0 && flags[i] != 1) return 0;
    }
    return 1;
}

/* Whether a run could have come to all numbers of a state, which are the fields before the number of communications: none
 * of them is larger than products of numbers that can be set. Any stop time may be set, and energies begin at the least
 * one. */
static int all_reached(const State *state) {
    const char *bytes = (const char *)state;
    if (!all_finite(&state->stop_time, 1) || !all_finite(state->highest, HIGHEST * BALANCES)) return 0;
    if (!all_finite(state->drifts, DRIFTS * BALANCES)) return 0;
    if (!all_finite(state->held_last, CONDITIONS) || !all_finite(state->happened_at, CONDITIONS)) return 0;
    for (size_t i = 0; i < offsetof(State, highest); i += sizeof(double)) {
        double number;
        memcpy(&number, bytes + i, sizeof number);
        if (!(fabs(number) <= MOST_REACHED) && i != offsetof(State, stop_time)) return 0;
    }
    return 1;
}

/* Whether a state is one that an instance can be in. */
static int possible(const State *state) {
    int dependent = 0;
    if (!all_reached(state)) return 0;
    if (!all_flags(state->held, INPUTS) || !all_flags(state->dependent, COORDINATES)) return 0;
    for (int j = 0; j < COORDINATES; j++) dependent += state->dependent[j];
    if (!all_flags(&state->has_stop_time, 1) || !all_flags(&state->initialized, 1)) return 0;
    if (!all_flags(&state->contradictory, 1)) return 0;
    if (!all_flags(state->has_held, CONDITIONS) || !all_flags(state->happened, CONDITIONS)) return 0;
    if (!all_flags(&state->energies_followed, 1) || state->communications > UINT64_MAX / (4 * DENSE)) return 0;
    if (state->mode < INSTANTIATED || state->mode > TERMINATED) return 0;
#if MODEL_EXCHANGE
    if (!all_flags(&state->exchanges, 1) || !all_flags(&state->away, 1) || !all_flags(&state->led, 1) || !all_finite(state->point, POINT)) return 0;
#if INDICATORS > 0
    if (!all_flags(state->below, INDICATORS)) return 0;
#endif
    if (state->mode == (state->exchanges ? STEPPING : CONTINUOUS_TIME)) return 0;
#else
    if (state->mode == CONTINUOUS_TIME) return 0;
#endif
    if (state->mode >= STEPPING && !state->initialized) return 0;
#if CLOCKS
    for (int k = 0; k < SAMPLINGS; k++) {
        if (!(state->ticks[k] >= 0.0) || (state->ticking[k] != 0.0 && state->ticking[k] != 1.0)) return 0;
    }
#endif
#if ERROR > 0
    const double points = state->error_record[ERROR_RECORD - 2];
    if (!all_finite(&points, 1) || points < 0.0) return 0;
#endif
    if (state->step_status < DONE || state->step_status > REFUSED) return 0;
    if (dependent != DEPENDENT && (DEPENDENT == 0 || state->initialized)) return 0;
    return state->step_size >= SMALLEST_STEP && state->tolerance_factor > 0.0;
}

/* Why a saved state cannot be taken; NULL where it can. */
static const char *objection(const Saved *saved) {
    const char *why = objection_to_head(&saved->head, sizeof *saved);
    if (why) return why;
    if (saved->head.checksum != checksum(&saved->state)) return "it is damaged: its checksum does not fit";
    if (!possible(&saved->state)) return "it says what no instance can go on from";
    return NULL;
}

#define REFUSE_STATE(why) return REFUSE("the saved state is refused: %s", why)

/* Make room for a saved state, or use the room of one that is given back. */
static Status make_room(Instance *instance, void **saved) {
    if (*saved) {
        const char *why = objection_to_head(*saved, sizeof(Saved));
        if (why) REFUSE_STATE(why);
        return DONE;
    }
    *saved = malloc(sizeof(Saved));
    return *saved ? DONE : REFUSE("there is no memory for a saved state");
}

static Status save(Instance *instance, void **saved) {
    if (make_room(instance, saved) != DONE) return REFUSED;
    seal(*saved, &instance->state);
    instance->was_saved = 1;
    return DONE;
}

/* Why an instance cannot take a saved state; NULL where it can. */
static const char *objection_of(const Instance *instance, const Saved *saved) {
    const char *why = objection(saved);
#if MODEL_EXCHANGE
    if (!why && saved->state.exchanges != instance->exchanges) {
        return instance->exchanges ? "it is that of an instance for co-simulation" : "it is that of an instance for model exchange";
    }
#else
    (void)instance;
#endif
    return why;
}

static Status restore(Instance *instance, const void *saved) {
    const char *why = objection_of(instance, saved);
    if (why) REFUSE_STATE(why);
#if MODEL_EXCHANGE
    instance->flow_known = 0;
#endif
    memcpy(&instance->state, &((const Saved *)saved)->state, sizeof(State));
    instance->was_saved = 1;
    instance->watch.follows = 0;
    instance->discarded.is_set = 0;
    instance->known = NOTHING;
    return DONE;
}

static void release(void *saved) { free(saved); }

static Status serialize(Instance *instance, const void *saved, char *bytes, size_t size) {
    if (size < sizeof(Saved)) return REFUSE("a saved state needs %u bytes, not %u", (unsigned)sizeof(Saved), (unsigned)size);
    const char *why = objection(saved);
    if (why) REFUSE_STATE(why);
    memcpy(bytes, saved, sizeof(Saved));
    return DONE;
}

static Status deserialize(Instance *instance, const char *bytes, size_t size, void **saved) {
    Saved given;
    if (size >= sizeof given.head) {
        memcpy(&given.head, bytes, sizeof given.head);
        const char *why = objection_to_head(&given.head, given.head.size);
        if (why) REFUSE_STATE(why);
    }
    if (size != sizeof(Saved)) {
        return REFUSE(
            "the saved state is refused: it has %u bytes; a state of this FMU has %u", (unsigned)size,
            (unsigned)sizeof(Saved)
        );
    }
    memcpy(&given, bytes, sizeof given); /* the host's bytes may stand anywhere, a state must be aligned */
    const char *why = objection_of(instance, &given);
    if (why) REFUSE_STATE(why);
    if (make_room(instance, saved) != DONE) return REFUSED;
    memcpy(*saved, &given, sizeof given);
    instance->was_saved = 1;
    return DONE;
}
