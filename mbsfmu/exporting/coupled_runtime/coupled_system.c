/* Coupled FMUs as one system: the exchange of the master, with all that its Python does around it at equal steps. */

#include "coupled_system.h"

#include "coupled_sizes.h"

#define INSIDE_FMU
#include "exchange.c"

#include "platform.h"

#include "coupled_components.h"
#include "coupled_events.h"
#include "coupled_values.h"

#include "coupled_tables.h"

#include "consistent_start.h"

static const double MOST_EXTRAPOLATED = 100.0; /* lengths of a step before; errors of 1e-6 become 1e-4 */

/* What a saved state holds; the states of the components behind. */
struct Saved {
    struct System *system;
    struct Saved *next;
    struct Place place;
    double lengths[2], *changing;
    int length_count;
    int is_complete, has_missed, is_initializing, is_stepping;
    struct Clock *clocks;
    double *next_events;
    void *states[COMPONENTS];
};

static struct Group *groups_of(struct System *system)
{
    return (struct Group *)system->blocks[0];
}

/* -- begin and end --------------------------------------------------------------------------------------------------- */

/* Let a member save its state where sweeps are made again, and restore it. */
static int make_kept_state(struct Unit *unit, struct SavedState *saved)
{
    const char *get = unit->spec->version == 2 ? "fmi2GetFMUstate" : "fmi3GetFMUState";
    const char *set = unit->spec->version == 2 ? "fmi2SetFMUstate" : "fmi3SetFMUState";
    saved->get.function = (GetStateFunction *)need(unit, get);
    saved->set.function = (SetStateFunction *)need(unit, set);
    saved->get.number = number_of(unit, get);
    saved->set.number = number_of(unit, set);
    saved->state = &unit->kept;
    return saved->get.function && saved->set.function;
}

static int make_members(struct System *system)
{
    struct Exchange *exchange = &system->exchange;
    for (size_t turn = 0; turn < COMPONENTS; turn++) {
        struct Unit *unit = &system->units[turn_order[turn]];
        const struct ComponentSpec *spec = unit->spec;
        struct Member *member = &system->members[turn];
        const size_t n = spec->entries.port.count;
        double *taken = room_for(system, ROWS * n, sizeof *taken);
        member->portion = room_for(system, ROWS * n, sizeof *taken);
        if (!taken || !member->portion)
            return fails(system, "there is no memory for an instance");
        if (!make_port(unit, &spec->entries.port, spec->shares ? taken : NULL, &unit->entries) ||
            !make_port(unit, &spec->outputs, exchange->values + spec->first_output, &unit->outputs))
            return 0;
        Function step = need(unit, spec->version == 2 ? "fmi2DoStep" : "fmi3DoStep");
        if (!step)
            return 0;
        member->make_step.number = number_of(unit, spec->version == 2 ? "fmi2DoStep" : "fmi3DoStep");
        if (spec->version == 2) {
            member->make_step.function = (MakeStepFunction *)step;
        } else {
            member->make_step.reporting = (ReportingMakeStepFunction *)step;
            member->make_step.report = &unit->report;
        }
        member->clock = &unit->clock;
        if (SWEEPS_AGAIN > 0 && !make_kept_state(unit, &member->saved))
            return 0;
        member->inputs = unit->entries;
        member->outputs = unit->outputs;
        member->sources = (ptrdiff_t *)spec->entries.sources;
        member->factors = (double *)spec->entries.factors;
        member->offsets = (double *)spec->entries.offsets;
        member->taken = taken;
        member->entries = n;
        member->first_entry = spec->first_entry;
        member->first_output = spec->first_output;
        member->converts = spec->converts;
        member->ramps = spec->ramps;
        member->shares = spec->shares;
        member->rate = spec->rate;
        member->drives_later = spec->drives_later;
        if (spec->ramps && spec->version == 3) {
            unit->ramp.group = unit->entries.groups[0];
            unit->ramp.group.buffer = room_for(system, unit->ramp.group.count, sizeof(double));
            unit->ramp.values = unit->entries.values;
            unit->ramp.slopes = unit->entries.slopes;
            if (!unit->ramp.group.buffer)
                return fails(system, "there is no memory for an instance");
        }
    }
    return 1;
}

/* Give the exchange its memory. */
static int make_exchange(struct System *system)
{
    struct Exchange *exchange = &system->exchange;
    const size_t n = OUTPUTS, known_rows = KNOWN_ROWS;
    system->changing_count = (known_rows + 1) * n + ENTRIES + 2 * VARIABLES;
    system->changing = room_for(system, system->changing_count, sizeof(double));
    system->before = room_for(system, 2 * VARIABLES, sizeof(double));
    system->start_values = room_for(system, START_COLUMNS, sizeof(double));
    system->members = room_for(system, COMPONENTS, sizeof *system->members);
    exchange->before = room_for(system, n, sizeof(double));
    exchange->polynomials = room_for(system, ROWS * n, sizeof(double));
    exchange->extrapolation = room_for(system, ROWS * known_rows * n, sizeof(double));
    exchange->interpolation = room_for(system, ROWS * known_rows * n, sizeof(double));
    exchange->recorded = room_for(system, n, sizeof(double));
    exchange->unknown = room_for(system, n, 1);
    if (!system->changing || !system->before || !system->start_values || !system->members || !exchange->before || !exchange->polynomials ||
        !exchange->extrapolation || !exchange->interpolation || !exchange->recorded || !exchange->unknown)
        return fails(system, "there is no memory for an instance");
    exchange->rows = exchange->output_rows = ROWS;
    exchange->earliest = INFINITY;
    exchange->outputs = exchange->columns = n;
    exchange->known_rows = known_rows;
    exchange->points = POINTS;
    exchange->entry_count = ENTRIES;
    exchange->members = system->members;
    exchange->member_count = COMPONENTS;
    exchange->in_turn = IN_TURN;
    exchange->corrects = CORRECTS;
    exchange->adapts = ADAPTS;
    exchange->sweeps_again = SWEEPS_AGAIN;
    exchange->patience = INFINITY;
    exchange->known = system->changing;
    exchange->values = exchange->known + known_rows * n;
    exchange->missed = exchange->values + n;
    system->given = exchange->missed + ENTRIES;
    exchange->held = (unsigned char *)held;
    exchange->corrected = (unsigned char *)corrected;
    exchange->times = system->point;
    return 1;
}

static int make_system(struct System *system, const char *resources)
{
    struct Group *groups = room_for(system, GROUPS, sizeof *groups); /* the first block, see groups_of */
    if (!groups || !make_exchange(system))
        return fails(system, "there is no memory for an instance");
#if defined(LINKED_COMPONENTS)
    (void)resources;
#else
    if (!resources || !decode_path(resources, system->resources, sizeof system->resources))
        return fails(system, "the importer gives no path of the resources, where the components are");
#endif
    for (size_t k = 0; k < COMPONENTS; k++)
        if (!begin_life_of(&system->units[k]))
            return 0;
    for (size_t k = 0; k < GROUPS; k++)
        if (!make_group(system, &group_specs[k], &groups[k]))
            return 0;
    for (size_t k = 0; k < COMPONENTS; k++) {
        struct Unit *unit = &system->units[k];
        if (!make_port(unit, &unit->spec->start_entries.port, NULL, &unit->start_entries) ||
            !make_port(unit, &unit->spec->start_outputs, system->start_values + unit->spec->first_start_output,
                       &unit->start_outputs))
            return 0;
    }
    if (!make_members(system))
        return 0;
    system->exchange.disturbing = room_for(system, system->call_count, 1);
    if (!system->exchange.disturbing)
        return fails(system, "there is no memory for an instance");
    for (size_t k = 0; k < VARIABLES; k++)
        system->given[k] = variables[k].start;
    system->is_whole = 1;
    return 1;
}

System *create_system(Warned told, void *environment_of_host, const char *resources)
{
    static unsigned char nowhere;
    struct System *system = calloc(1, sizeof *system);
    if (!system)
        return NULL;
    system->told = told;
    system->environment = environment_of_host;
    system->exchange.environment = environment();
    system->exchange.disturbing = &nowhere;
    system->units = calloc(COMPONENTS, sizeof *system->units);
    for (size_t k = 0; system->units && k < COMPONENTS; k++) {
        system->units[k].spec = &components[k];
        system->units[k].system = system;
    }
    if (!system->units || !make_system(system, resources))
        system->has_failed = 1;
    return system;
}

int is_whole(const System *system)
{
    return system && system->is_whole;
}

int is_sound(System *system)
{
    if (!is_whole(system))
        return 0;
    return system->has_failed ? fails(system, "a component has failed before; the FMU goes on after a reset") : 1;
}

void destroy_system(System *system)
{
    if (!system)
        return;
    for (struct Saved *saved = system->saved; saved; saved = saved->next) {
        for (size_t k = 0; k < COMPONENTS; k++)
            free_state_of(&system->units[k], &saved->states[k]);
        saved->system = NULL;
    }
    for (size_t k = COMPONENTS; system->units && k-- > 0;) {
        struct Unit *unit = &system->units[k];
        if (unit->library) {
            end_life_of(unit);
            unload_library(unit->library);
        }
    }
    for (size_t k = 0; k < system->block_count; k++)
        free(system->blocks[k]);
    free(system->blocks);
    free(system->calls);
    free(system->units);
    free(system);
}

const char *reason_of(const System *system)
{
    return system ? system->reason : "there is no memory for an instance";
}

double time_of_system(const System *system)
{
    return system->place.reached;
}

double step_of_system(const System *system)
{
    return system->given[STEP_VARIABLE];
}

/* -- values ---------------------------------------------------------------------------------------------------------- */

static int send_value(struct System *system, size_t variable)
{
    const struct VariableSpec *spec = &variables[variable];
    for (size_t k = 0; k < spec->target_count; k++) {
        const struct TargetSpec *target = &spec->targets[k];
        if (!set_target(system, target, target->factor * system->given[variable] + target->offset, NULL))
            return 0;
    }
    return 1;
}

/* Read what ports hand over beside what they set: an importer sets it, or a saved state brings it back. */
static int refresh_ports(struct System *system)
{
    for (size_t k = 0; system->is_initializing && k < GROUPS; k++)
        for (size_t p = 0; p < group_specs[k].part_count; p++)
            if (!refresh_port(system, &groups_of(system)[k].parts[p].entries))
                return 0;
    for (size_t k = 0; k < COMPONENTS; k++) {
        const struct Unit *unit = &system->units[k];
        if (!refresh_port(system, system->is_initializing ? &unit->start_entries : &unit->entries))
            return 0;
    }
    return 1;
}

/* Whether a variable may take a value now. */
static int may_set(struct System *system, unsigned variable, double value)
{
    const struct VariableSpec *spec = &variables[variable];
    const int is_fixed = spec->kind == GIVEN_PARAMETER || spec->kind == GIVEN_STEP;
    if (spec->kind == READ_OUTPUT)
        return fails(system, "%s is computed and cannot be set", spec->name);
    if (!isfinite(value))
        return fails(system, "%s = %g is refused: it must be a finite number", spec->name, value);
    if (spec->kind == GIVEN_STEP && value < SMALLEST_STEP)
        return fails(system, "%s = %g s is refused: it must be at least %g", spec->name, value, SMALLEST_STEP);
    if (spec->kind == GIVEN_STEP && value > LARGEST)
        return fails(system, "%s = %g s is refused: it must be at most %g", spec->name, value, LARGEST);
    /* Some hosts send all parameters in every step; what changes nothing is no error. */
    if (is_fixed && system->is_stepping && value != system->given[variable])
        return fails(system, "%s is a fixed parameter; it cannot be set after initialization mode", spec->name);
    return 1;
}

/* Give components their values from before; on failure the system goes on no more. */
static void take_back(struct System *system, const unsigned *set, size_t count)
{
    char why[LONGEST_SENTENCE];
    memcpy(why, system->reason, sizeof why);
    memcpy(system->given, system->before, 2 * VARIABLES * sizeof(double));
    for (size_t k = 0; k < count && !system->has_failed; k++)
        system->has_failed = !send_value(system, set[k]);
    if (!system->has_failed)
        system->has_failed = !refresh_ports(system);
    memcpy(system->reason, why, sizeof why);
}

int set_values(System *system, const unsigned *set, size_t count, const double *values)
{
    const int sends = system->is_initializing || system->is_stepping;
    for (size_t k = 0; k < count; k++)
        if (!may_set(system, set[k], values[k]))
            return 0;
    memcpy(system->before, system->given, 2 * VARIABLES * sizeof(double));
    system->is_evaluated = 0;
    for (size_t k = 0; k < count; k++) {
        const int is_same = system->is_stepping && values[k] == system->given[set[k]];
        const int is_fixed = variables[set[k]].kind == GIVEN_PARAMETER;
        system->given[set[k]] = values[k];
        system->given[VARIABLES + set[k]] = 1.0;
        if (!sends || (is_same && is_fixed) || send_value(system, set[k]))
            continue;
        take_back(system, set, k);
        return 0;
    }
    if (!sends || refresh_ports(system))
        return 1;
    system->has_failed = 1;
    return 0;
}

/* Pass connected values on in initialization mode, in the order in which outputs depend on each other. */
static int initialize_values(struct System *system)
{
    double *values = system->start_values;
    struct Group *groups = groups_of(system);
    if (system->is_evaluated)
        return 1;
    for (size_t k = 0; k < COMPONENTS; k++)
        if (!went_well(system, read_port(&system->exchange, &system->units[k].start_outputs)))
            return 0;
    for (size_t k = 0; k < GROUPS; k++) {
        const struct GroupSpec *spec = groups[k].spec;
        if (spec->is_loop ? !solve_group(system, &groups[k], values)
                          : !evaluate_group(system, &groups[k], values, groups[k].found))
            return 0;
        for (size_t j = 0; !spec->is_loop && j < spec->count; j++)
            values[spec->columns[j]] = groups[k].found[j];
    }
    for (size_t k = 0; k < COMPONENTS; k++) {
        struct Unit *unit = &system->units[k];
        if (!write_entries(system, &unit->spec->start_entries, &unit->start_entries, values))
            return 0;
    }
    return system->is_evaluated = 1;
}

int get_value(System *system, unsigned variable, double *value)
{
    const struct VariableSpec *spec = &variables[variable];
    if (spec->kind != READ_OUTPUT) {
        *value = system->given[variable];
        return 1;
    }
    if (system->is_initializing && !initialize_values(system))
        return 0;
    if (!system->is_initializing && !system->is_stepping)
        return fails(system, "outputs have values from initialization mode on");
    double found = system->is_stepping ? system->exchange.values[spec->column] : system->start_values[spec->start_column];
    *value = spec->factor * found + spec->offset;
    return 1;
}

/* -- initialization --------------------------------------------------------------------------------------------------- */

static int set_up_unit(struct Unit *unit, double start, const double *stop)
{
    typedef int (*SetUp)(void *, int, double, double, int, double);
    const struct ComponentSpec *spec = unit->spec;
    unit->clock = (struct Clock){start, 0};
    if (spec->version == 3)
        return 1; /* it is told as it enters initialization mode */
    SetUp set_up = (SetUp)need(unit, "fmi2SetupExperiment");
    return set_up && is_done(unit, "fmi2SetupExperiment",
                             set_up(unit->component, spec->has_tolerance, spec->tolerance, start, stop != NULL,
                                    stop ? *stop : 0.0));
}

static int enter_initialization_of(struct Unit *unit, double start, const double *stop)
{
    typedef int (*Enter)(void *, bool, double, double, bool, double);
    const struct ComponentSpec *spec = unit->spec;
    if (spec->version == 2)
        return call(unit, "fmi2EnterInitializationMode");
    Enter enter = (Enter)need(unit, "fmi3EnterInitializationMode");
    return enter && is_done(unit, "fmi3EnterInitializationMode",
                            enter(unit->component, spec->has_tolerance != 0, spec->tolerance, start, stop != NULL,
                                  stop ? *stop : 0.0));
}

int begin_initialization(System *system, double start, const double *stop)
{
    system->exchange.environment = environment();
    system->place = (struct Place){start, 0.0, start, start};
    system->has_failed = 1; /* until all is done */
    for (size_t k = 0; k < COMPONENTS; k++)
        if (!set_up_unit(&system->units[k], start, stop))
            return 0;
    for (int k = 0; k < STARTS; k++)
        if (!set_target(system, &starts[k].target, starts[k].value, starts[k].text))
            return 0;
    for (size_t k = 0; k < VARIABLES; k++)
        if (system->given[VARIABLES + k] != 0.0 && !send_value(system, k))
            return 0;
    for (size_t k = 0; k < COMPONENTS; k++)
        if (!enter_initialization_of(&system->units[k], start, stop))
            return 0;
    system->is_initializing = 1;
    if (!refresh_ports(system))
        return 0;
    system->has_failed = system->is_evaluated = 0;
    return 1;
}

int end_initialization(System *system)
{
    struct Exchange *exchange = &system->exchange;
    exchange->environment = environment();
    if (!initialize_values(system))
        return 0;
    system->has_failed = 1; /* until all is done */
    for (size_t k = 0; k < COMPONENTS; k++) {
        struct Unit *unit = &system->units[k];
        if (!call(unit, unit->spec->version == 2 ? "fmi2ExitInitializationMode" : "fmi3ExitInitializationMode"))
            return 0;
        unit->is_stepping = 1;
        if (unit->spec->has_events && !leave_event_mode(unit))
            return 0;
        if (unit->report.ends)
            return ends_the_run(unit, system->place.time);
    }
    for (size_t k = 0; k < COMPONENTS; k++) {
        struct Unit *unit = &system->units[k];
        if (!refresh_port(system, &unit->entries) || !went_well(system, read_port(exchange, &unit->outputs)))
            return 0;
        if (unit->spec->ramps && unit->spec->version == 3) {
            struct VariableBlock *within = &unit->ramp.group;
            memcpy(within->buffer, unit->entries.groups[0].buffer, within->count * sizeof(double));
            unit->ramp.component = unit->component;
        }
    }
    memcpy(exchange->known + OUTPUTS, exchange->values, OUTPUTS * sizeof(double));
    memset(exchange->known + 2 * OUTPUTS, 0, (KNOWN_ROWS - 2) * OUTPUTS * sizeof(double));
    exchange->has_missed = 0;
    exchange->length_count = 0;
    system->is_initializing = 0;
    system->is_stepping = 1;
    system->has_failed = 0;
    return 1;
}

int terminate_system(System *system)
{
    for (size_t k = 0; k < COMPONENTS; k++) {
        struct Unit *unit = &system->units[k];
        if (unit->is_fatal || !unit->is_stepping)
            continue;
        unit->is_stepping = 0;
        if (!call(unit, unit->spec->version == 2 ? "fmi2Terminate" : "fmi3Terminate"))
            return 0;
    }
    system->is_stepping = 0;
    return 1;
}

/* -- steps ------------------------------------------------------------------------------------------------------------ */

/* Forget what is known from much shorter steps: over a longer one it extrapolates round-off. */
static void forget_short_steps(struct System *system, double length)
{
    struct Exchange *exchange = &system->exchange;
    for (int k = 0; k < exchange->length_count; k++)
        if (length > MOST_EXTRAPOLATED * exchange->lengths[k])
            exchange->length_count = k;
}

static int make_communication_step(struct System *system, double length)
{
    struct Exchange *exchange = &system->exchange;
    int outcome;
    exchange->environment = environment();
    exchange->goes_back = system->saved != NULL;
    exchange->made = exchange->first = exchange->first_row = 0;
    exchange->step = length;
    system->point[0] = system->place.time;
    forget_short_steps(system, length);
    exchange->under_way = 0;
    while ((outcome = make_step(exchange)) == UNFINISHED)
        if (!finish_step(system->calls[exchange->refused].unit, exchange->unit_step, exchange->status))
            return 0;
    if (outcome == NOT_FINITE) {
        size_t j = 0;
        while (j + 1 < OUTPUTS && isfinite(exchange->values[j]))
            j++;
        return fails(system, "%s is not finite at t = %.9g s: the run diverges", output_names[j], system->place.time + length);
    }
    return went_well(system, outcome);
}

void restart_history(System *system)
{
    system->exchange.length_count = 0;
}

/* The communication point behind some of those that were not passed yet. */
static double point_behind(const struct System *system, double count)
{
    return system->place.start + step_of_system(system) * (system->place.steps + count);
}

/* Within how many s an end of a step of the importer is a communication point. */
static double near_point(double step, double length)
{
    return (TAKES_ANY_STEP ? OVERSHOOT : SAME_TIME) * smaller(step, length);
}

/* Let communication points begin anew where the run is, if they were left by steps that hold whole numbers of communication
 * steps: times that are added up leave them by round-off. */
static void follow_importer(struct System *system, double end)
{
    const double step = step_of_system(system), length = end - system->place.time, near = near_point(step, length);
    const double off = fabs(system->place.time - point_behind(system, 0.0));
    if (fabs(length - step * rint(length / step)) > near || off <= near || fabs(off - step) <= near)
        return;
    system->place.start = system->place.time;
    system->place.steps = 0.0;
}

/* Whether components that make steps of one length only are asked for no others. */
static int are_steps_equal(struct System *system, double end)
{
    const double step = step_of_system(system), length = end - system->place.time, count = rint(length / step);
    size_t k = 0;
    if (TAKES_ANY_STEP || (count >= 1.0 && fabs(length - count * step) <= SAME_TIME * step + NEIGHBOURS * resolution(end, end)))
        return 1;
    while (components[k].takes_any_step)
        k++;
    return fails(system, "the step to %.9g s is no multiple of the communication step of %g s, and %s takes steps of one "
                 "length only", end, step, components[k].name);
}

int advance_system(System *system, double end)
{
    struct Place *place = &system->place;
    const double step = step_of_system(system), near = near_point(step, end - place->reached);
    if (!are_steps_equal(system, end))
        return 0;
    follow_importer(system, end);
    for (int is_last = 0; !is_last;) {
        place->steps += point_behind(system, 1.0) - place->time <= near;
        double next = point_behind(system, 1.0), length;
        is_last = next >= end - near;
        const int is_point = !is_last || next <= end + near;
        /* The importer may have the time of a communication point by other operations. */
        if (is_last && fabs(next - end) > NEIGHBOURS * resolution(next, end))
            next = end;
        length = next - place->time;
        if (!TAKES_ANY_STEP || fabs(length - step) <= NEIGHBOURS * resolution(place->time, next))
            length = step;
        if (!make_communication_step(system, length)) {
            system->has_failed = 1;
            return 0;
        }
        place->time = next;
        place->steps += is_point;
    }
    place->reached = end;
    return 1;
}

/* -- saved states ------------------------------------------------------------------------------------------------------ */

static struct Saved *make_saved(struct System *system)
{
    struct Saved *saved = calloc(1, sizeof *saved);
    if (!saved)
        return NULL;
    saved->changing = calloc(system->changing_count, sizeof *saved->changing);
    saved->clocks = calloc(COMPONENTS, sizeof *saved->clocks);
    saved->next_events = calloc(COMPONENTS, sizeof *saved->next_events);
    saved->system = system;
    if (saved->changing && saved->clocks && saved->next_events) {
        saved->next = system->saved;
        system->saved = saved;
        return saved;
    }
    free(saved->changing);
    free(saved->clocks);
    free(saved->next_events);
    free(saved);
    return NULL;
}

int save_system(System *system, void **place)
{
    struct Saved *saved = *place;
    if (saved && saved->system != system)
        return fails(system, "the saved state is not of this instance since its last reset");
    if (!saved && !(saved = make_saved(system)))
        return fails(system, "there is no memory for a saved state");
    *place = saved;
    saved->is_complete = 0;
    for (size_t k = 0; k < COMPONENTS; k++) {
        if (!save_unit(&system->units[k], &saved->states[k]))
            return 0;
        saved->clocks[k] = system->units[k].clock;
        saved->next_events[k] = system->units[k].report.next_event;
    }
    memcpy(saved->changing, system->changing, system->changing_count * sizeof(double));
    memcpy(saved->lengths, system->exchange.lengths, sizeof saved->lengths);
    saved->length_count = system->exchange.length_count;
    saved->place = system->place;
    saved->has_missed = system->exchange.has_missed;
    saved->is_initializing = system->is_initializing;
    saved->is_stepping = system->is_stepping;
    saved->is_complete = 1;
    return 1;
}

int restore_system(System *system, const void *given)
{
    const struct Saved *saved = given;
    if (saved->system != system)
        return fails(system, "the saved state is not of this instance since its last reset");
    if (!saved->is_complete)
        return fails(system, "the saved state was given back for another one, which could not be saved");
    for (size_t k = 0; k < COMPONENTS; k++)
        if (system->units[k].is_fatal)
            return fails(system, "%s has failed for good; the FMU goes on after a reset", components[k].name);
    for (size_t k = 0; k < COMPONENTS; k++) {
        struct Unit *unit = &system->units[k];
        system->has_failed |= k > 0; /* until all is done: some are at the state, others are not */
        if (!restore_unit(unit, saved->states[k], saved->next_events[k]))
            return 0;
        unit->clock = saved->clocks[k];
        unit->is_stepping = saved->is_stepping;
    }
    memcpy(system->changing, saved->changing, system->changing_count * sizeof(double));
    memcpy(system->exchange.lengths, saved->lengths, sizeof saved->lengths);
    system->exchange.length_count = saved->length_count;
    system->place = saved->place;
    system->exchange.has_missed = saved->has_missed;
    system->is_initializing = saved->is_initializing;
    system->is_stepping = saved->is_stepping;
    if ((system->is_initializing || system->is_stepping) && !refresh_ports(system))
        return 0;
    system->is_evaluated = system->has_failed = 0;
    return 1;
}

void release_saved(void *given)
{
    struct Saved *saved = given;
    if (!saved)
        return;
    if (saved->system) {
        struct Saved **place = &saved->system->saved;
        for (size_t k = 0; k < COMPONENTS; k++)
            free_state_of(&saved->system->units[k], &saved->states[k]);
        while (*place && *place != saved)
            place = &(*place)->next;
        if (*place)
            *place = saved->next;
    }
    free(saved->changing);
    free(saved->clocks);
    free(saved->next_events);
    free(saved);
}
