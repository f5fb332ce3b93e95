/* Steps, what the host is told during them, and events. */

/* Before an internal step the host may give inputs values where it ends. */
static void report_step_begin(void *host, double end) {
    Life *life = host;
    fmi3Boolean early = false;
    fmi3Float64 time = end;
    life->update = BEFORE_INTERNAL_STEP;
    life->internal_end = end;
    life->intermediate_update(life->component.environment, end, true, false, false, false, &early, &time);
    life->update = NO_UPDATE;
}

/* After an internal step the host may get values, and end the step early; gives the time up to which it goes on. */
static double report_step_end(void *host, double end) {
    Life *life = host;
    const fmi3Boolean can_return = life->takes_early_return;
    fmi3Boolean early = false;
    fmi3Float64 time = end;
    life->update = AFTER_INTERNAL_STEP;
    life->intermediate_update(life->component.environment, end, false, true, true, can_return, &early, &time);
    life->update = NO_UPDATE;
    if (!(can_return && early)) return HUGE_VAL;
    return time >= end ? time : end;
}

EXPORT fmi3Status NAMED(fmi3DoStep)(
    fmi3Instance handle, fmi3Float64 time, fmi3Float64 step, fmi3Boolean no_return, fmi3Boolean *event_handling_needed,
    fmi3Boolean *terminate, fmi3Boolean *early_return, fmi3Float64 *last_time
) {
    WITH_INSTANCE;
    NEED(event_handling_needed, "whether events are to be handled");
    NEED(terminate, "whether the simulation is to end");
    NEED(early_return, "whether the step ends early");
    NEED(last_time, "the time that is reached");
    Wishes wishes = {
        .ends_at_events = life->takes_early_return, .holds_events = life->uses_events, .stays = no_return};
    if (life->intermediate_update) {
        wishes.begins = report_step_begin;
        wishes.ended = report_step_end;
        wishes.host = life;
    }
    const Status status = fmu_functions.step(component->instance, time, step, &wishes);
    *last_time = fmu_functions.time(component->instance);
    *terminate = false; /* the unit never ends a simulation by itself */
    *early_return = status == DONE && life->takes_early_return && *last_time < time + step;
    *event_handling_needed = status == DONE && life->uses_events && fmu_functions.is_at_event(component->instance);
    return status_of(status);
}

#if MODEL_EXCHANGE

/* Let events happen, and tell what becomes of continuous states where the host integrates these. */
static Status update_states(Life *life, fmi3Boolean *nominals, fmi3Boolean *states, int *some, double *next) {
    Updated updated;
    if (!life->exchanges) return fmu_functions.pass_events(life->component.instance, some, next);
    const Status status = exchange_functions.update(life->component.instance, &updated);
    if (status != DONE) return status;
    *some = updated.some;
    *nominals = updated.nominals_changed != 0;
    *states = true;
    *next = updated.next;
    return DONE;
}

static Status enter_events(Life *life) {
    Instance *instance = life->component.instance;
    return life->exchanges ? exchange_functions.enter_events(instance) : fmu_functions.enter_events(instance);
}

#else

static Status update_states(Life *life, fmi3Boolean *nominals, fmi3Boolean *states, int *some, double *next) {
    (void)nominals;
    (void)states;
    return fmu_functions.pass_events(life->component.instance, some, next);
}

static Status enter_events(Life *life) { return fmu_functions.enter_events(life->component.instance); }

#endif

#define NEED_EVENTS \
    if (!life->uses_events) return refuse(component, "the instance was made without event mode")

EXPORT fmi3Status NAMED(fmi3EnterEventMode)(fmi3Instance handle) {
    WITH_INSTANCE;
    if (!life->exchanges) NEED_EVENTS;
    return status_of(enter_events(life));
}

EXPORT fmi3Status NAMED(fmi3EnterStepMode)(fmi3Instance handle) {
    WITH_INSTANCE;
#if MODEL_EXCHANGE
    if (life->exchanges) return refuse(component, "this instance is for model exchange: it makes no steps");
#endif
    NEED_EVENTS;
    return status_of(fmu_functions.exit_events(component->instance));
}

/* Where events have happened another iteration is asked for: what this FMU gives to others has jumped. */
EXPORT fmi3Status NAMED(fmi3UpdateDiscreteStates)(
    fmi3Instance handle, fmi3Boolean *again, fmi3Boolean *terminate, fmi3Boolean *nominals, fmi3Boolean *states,
    fmi3Boolean *has_next, fmi3Float64 *next
) {
    WITH_INSTANCE;
    int some = 0;
    double time = 0.0;
    NEED(again, "whether discrete states need another update");
    NEED(terminate, "whether the simulation is to end");
    NEED(nominals, "whether nominal values have changed");
    NEED(states, "whether states have changed");
    NEED(has_next, "whether there is a next event");
    NEED(next, "the time of the next event");
    *nominals = *states = false;
    const Status status = update_states(life, nominals, states, &some, &time);
    if (status != DONE) return status_of(status);
    *again = some != 0;
    *terminate = false;
    *has_next = time < DBL_MAX;
    if (*has_next) *next = time;
    return fmi3OK;
}
