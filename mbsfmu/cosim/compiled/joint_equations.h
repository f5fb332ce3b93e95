/* Constraint equations of joints between two handles: mbsfmu/cosim/joints/joint_equations.py. */

#ifndef JOINT_EQUATIONS_H
#define JOINT_EQUATIONS_H

#include <string.h>

#include "layout.h"

enum joint_kind { SPHERICAL, REVOLUTE, PRISMATIC, FIXED };
enum { POSITION = 0, VELOCITY = 3, QUATERNION = 6, ANGULAR_VELOCITY = 10 }; /* places in a motion */
enum { WRENCH = 6 };

static double dot(const double *one, const double *other)
{
    return one[0] * other[0] + one[1] * other[1] + one[2] * other[2];
}

static void cross(const double *one, const double *other, double *result)
{
    result[0] = one[1] * other[2] - one[2] * other[1];
    result[1] = one[2] * other[0] - one[0] * other[2];
    result[2] = one[0] * other[1] - one[1] * other[0];
}

/* Rotation matrix of a unit quaternion, row by row. */
static void rotation(const double *quaternion, double *result)
{
    double w = quaternion[0], x = quaternion[1], y = quaternion[2], z = quaternion[3];
    result[0] = w * w + x * x - y * y - z * z;
    result[1] = 2.0 * (x * y - w * z);
    result[2] = 2.0 * (x * z + w * y);
    result[3] = 2.0 * (x * y + w * z);
    result[4] = w * w - x * x + y * y - z * z;
    result[5] = 2.0 * (y * z - w * x);
    result[6] = 2.0 * (x * z - w * y);
    result[7] = 2.0 * (y * z + w * x);
    result[8] = w * w - x * x - y * y + z * z;
}

static void turned(const double *matrix, const double *vector, double *result)
{
    for (size_t i = 0; i < 3; i++)
        result[i] = dot(matrix + 3 * i, vector);
}

/* What the equations of a joint need of the motions of both handles. */
struct pose {
    double apart[3], inner[9], outer[9];
    double axis[3];       /* of a revolute joint, as the second body carries it */
    double normals[2][3]; /* the two vectors perpendicular to the axis, as the first body carries them */
};

static void find_pose(const struct Joint *joint, struct pose *pose)
{
    const double *first = joint->handles[0].motion, *second = joint->handles[1].motion;
    const double *turn = joint->reference, *axes = joint->reference + 9;
    for (size_t i = 0; i < 3; i++)
        pose->apart[i] = second[POSITION + i] - first[POSITION + i];
    if (joint->kind == SPHERICAL)
        return;
    rotation(first + QUATERNION, pose->inner);
    rotation(second + QUATERNION, pose->outer);
    for (size_t k = 0; k < 2; k++)
        turned(pose->inner, axes + 3 * (k + 1), pose->normals[k]);
    double carried[3];
    for (size_t i = 0; i < 3; i++)
        carried[i] = turn[i] * axes[0] + turn[3 + i] * axes[1] + turn[6 + i] * axes[2];
    turned(pose->outer, carried, pose->axis);
}

/* Angles by which the orientation of the second body is off, about the axes of the first one. */
static void find_angles(const struct Joint *joint, const struct pose *pose, double *angles)
{
    double back[9], off[9];
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++)
            back[3 * i + j] = dot(pose->outer + 3 * i, joint->reference + 3 * j);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++)
            off[3 * i + j] = pose->inner[i] * back[j] + pose->inner[3 + i] * back[3 + j] + pose->inner[6 + i] * back[6 + j];
    angles[0] = 0.5 * (off[7] - off[5]);
    angles[1] = 0.5 * (off[2] - off[6]);
    angles[2] = 0.5 * (off[3] - off[1]);
}

/* What a joint is open by, in m and rad. */
static void find_gap(const struct Joint *joint, const struct pose *pose, double *gap)
{
    if (joint->kind == PRISMATIC) {
        for (size_t k = 0; k < 2; k++)
            gap[k] = dot(pose->normals[k], pose->apart);
        find_angles(joint, pose, gap + 2);
        return;
    }
    memcpy(gap, pose->apart, sizeof pose->apart);
    for (size_t k = 0; joint->kind == REVOLUTE && k < 2; k++)
        gap[3 + k] = dot(pose->normals[k], pose->axis);
    if (joint->kind == FIXED)
        find_angles(joint, pose, gap + 3);
}

static void turn_rows(double *begin, double *end, const double *direction)
{
    for (size_t i = 0; i < 3; i++) {
        end[3 + i] = direction[i];
        begin[3 + i] = -direction[i];
    }
}

/* Rows of both handles, each of shape (count, 6); what never changes is there already. */
static void find_rows(const struct Joint *joint, const struct pose *pose, double *begins, double *ends)
{
    size_t straight = joint->kind == PRISMATIC ? 2 : 3;
    double direction[3];
    for (size_t k = 0; k < straight; k++) {
        double *begin = begins + WRENCH * k, *end = ends + WRENCH * k;
        if (joint->kind != PRISMATIC) {
            begin[k] = -1.0;
            end[k] = 1.0;
            continue;
        }
        cross(pose->apart, pose->normals[k], direction);
        for (size_t i = 0; i < 3; i++) {
            end[i] = pose->normals[k][i];
            begin[i] = -pose->normals[k][i];
            begin[3 + i] = -direction[i];
        }
    }
    for (size_t k = straight; k < joint->count; k++) {
        if (joint->kind == REVOLUTE)
            cross(pose->axis, pose->normals[k - straight], direction);
        for (size_t i = 0; joint->kind != REVOLUTE && i < 3; i++)
            direction[i] = pose->inner[3 * i + k - straight];
        turn_rows(begins + WRENCH * k, ends + WRENCH * k, direction);
    }
}

/* Rows of one handle times its velocities. */
static double along(const double *row, const double *motion)
{
    double sum = row[0] * motion[VELOCITY];
    for (size_t i = 1; i < 3; i++)
        sum += row[i] * motion[VELOCITY + i];
    for (size_t i = 0; i < 3; i++)
        sum += row[3 + i] * motion[ANGULAR_VELOCITY + i];
    return sum;
}

/* Wrench of multipliers on one handle, by its rows. */
static void find_wrench(const double *rows, const double *multipliers, size_t count, double *wrench)
{
    for (size_t i = 0; i < WRENCH; i++)
        wrench[i] = 0.0;
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < WRENCH; i++)
            wrench[i] += rows[WRENCH * k + i] * multipliers[k];
}

#endif
