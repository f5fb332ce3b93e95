"""Scenes in a browser: they move, points are where closed forms say, and nothing is said or asked for."""

from __future__ import annotations

from math import cos, hypot, sin
from pathlib import Path

import numpy as np
import pytest
from accessibility import findings
from chromium import Chromium

from mbsfmu import Beam, BoxShape, CoupledModel, JointDrive, LinearSignal, Mechanism, Prismatic, Revolute, RigidBody
from mbsfmu.models import four_bar, pendulum, quick_return

SCENE = "document.querySelector('.mbsfmu-scene').scene"
EVIL = "</script><script>window.broken = 1</script><!-- '\"&"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The four-bar beside itself with longer steps, from where its valve has opened."""
    model = four_bar()
    fine, coarse = (model.simulation(step=step).run(1.5) for step in (2e-3, 2e-2))
    path = tmp_path_factory.mktemp("scene") / "page.html"
    fine.animate(beside={EVIL: coarse}).save(path)
    return path


def begin(browser: Chromium, page: Path, width: int = 1280, *, dark: bool = False) -> None:
    browser.open(page, width, dark=dark)
    browser.until(f"{SCENE}?.runs.length === 2")
    browser.evaluate(f"{SCENE}.pause()")


def point(browser: Chromium, name: str, run: int = 0) -> list[float]:
    return browser.evaluate(f"{SCENE}.point('{name}', {run})")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_scenes_are_quiet_reachable_and_alone(browser: Chromium, page: Path, width: int, dark: bool) -> None:
    begin(browser, page, width, dark=dark)
    assert browser.said == []
    assert browser.asked == []
    assert browser.evaluate("window.broken") is None
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("document.querySelector('.mbsfmu-scene').dataset.theme") == ("dark" if dark else "light")
    assert findings(browser) == []


def test_without_webgl_a_sentence_stands_there(browser: Chromium, page: Path) -> None:
    nothing = "HTMLCanvasElement.prototype.getContext = () => null"
    made = browser.call("Page.addScriptToEvaluateOnNewDocument", source=nothing)
    browser.open(page)
    browser.until("document.querySelector('.mbsfmu-scene .without') !== null")
    assert "no WebGL" in browser.evaluate("document.querySelector('.without').textContent")
    assert browser.said == []
    browser.call("Page.removeScriptToEvaluateOnNewDocument", **made)


def test_notebooks_have_the_page_in_a_frame(browser: Chromium, tmp_path: Path) -> None:
    """Scripts of a notebook and those of the page do not meet; what would end the frame is text."""
    animation = pendulum(1).simulation(compiled=False).run(0.1).animate(label=EVIL)
    notebook = tmp_path / "notebook.html"
    notebook.write_text(
        f"<!doctype html><title>notebook</title><body>{animation._repr_html_()}</body>", encoding="utf-8"
    )
    browser.open(notebook)
    inside = "document.querySelector('iframe').contentDocument?.querySelector('.mbsfmu-scene')?.scene"
    browser.until(f"{inside}?.runs.length === 1")
    assert browser.evaluate(f"{inside}.runs[0].label") == EVIL
    assert browser.evaluate("typeof THREE") == "undefined"
    assert browser.evaluate("window.broken") is None
    assert browser.said == []


def test_two_frames_differ(browser: Chromium, page: Path) -> None:
    """The pixels of the picture, not the numbers behind it."""
    begin(browser, page)
    drawn = (
        f"(() => {{ const s = {SCENE}; s.seek(TIME); s.renderer.render(s.scene, s.camera);"
        " return s.canvas.toDataURL(); })()"
    )
    first, second, again = (browser.evaluate(drawn.replace("TIME", str(time))) for time in (0.0, 1.4, 0.0))
    assert first == again
    assert first != second


def test_the_pin_is_where_circles_meet(browser: Chromium, page: Path) -> None:
    """Of the boom's pin at 3 m, the link of √2 m and the rocker of 2 m about E; and the boom's object is turned so."""
    begin(browser, page)
    for time in (0.0, 1.1, 1.37):
        browser.evaluate(f"{SCENE}.seek({time})")
        browser.evaluate(f"{SCENE}.draw(0)")
        x, y, z = point(browser, "boom.C")
        assert hypot(x, y) == pytest.approx(3.0, rel=1e-6)
        pin = point(browser, "link.end")
        assert hypot(pin[0] - x, pin[1] - y) == pytest.approx(2.0**0.5, rel=1e-5)
        assert hypot(pin[0], pin[1] + 1.0) == pytest.approx(2.0, rel=1e-5)
        assert z == pin[2] == pytest.approx(0.0, abs=1e-9)
        eye = f"{SCENE}.runs[0].lines[0].eyes[1].getWorldPosition(new THREE.Vector3()).toArray()"
        assert browser.evaluate(eye) == pytest.approx(point(browser, "rocker.centre"), abs=1e-6), "of the cylinder"
        group = browser.evaluate(f"{SCENE}.runs[0].bodies[0].matrixWorld.elements")
        angle = np.arctan2(y, x)
        assert group[:3] == pytest.approx([cos(angle), sin(angle), 0.0], abs=1e-6)


def test_all_of_a_body_is_in_the_picture_at_all_times(browser: Chromium, tmp_path: Path) -> None:
    """Also what sticks out of its points and comes up only later: a mast on an arm that turns by a quarter."""
    mast = BoxShape(size=(0.2, 4.0, 0.2), position=(0.0, 2.0, 0.0))
    arm = RigidBody(name="arm", mass=1.0, inertia=(0.1, 0.1, 0.1), points={"tip": (0.5, 0.0, 0.0)}, shapes=(mast,))
    hinge = Revolute(name="hinge", parent="ground.O", child="arm.origin", angle=-1.5708, angular_velocity=1.5708)
    mechanism = Mechanism(gravity=(0.0, 0.0, 0.0), ground={"O": (0.0, 0.0, 0.0)}, bodies=(arm,), joints=(hinge,))
    model = CoupledModel(name="mast", systems={"mechanism": mechanism})
    page = tmp_path / "page.html"
    model.simulation(compiled=False).run(2.0).animate().save(page)
    browser.open(page)
    browser.until(f"{SCENE}?.runs.length === 1")
    browser.evaluate(f"{SCENE}.pause()")
    for view in ("front", "oblique"):
        browser.evaluate(f"{SCENE}.look('{view}')")
        for time in (0.0, 1.0, 2.0):
            browser.evaluate(f"{SCENE}.seek({time}); {SCENE}.draw(0)")
            seen = browser.evaluate(
                f"(() => {{ const s = {SCENE}; s.camera.updateMatrixWorld(); return s.runs[0].bodies[0].localToWorld("
                "new THREE.Vector3(0, 4, 0)).project(s.camera).toArray(); })()"
            )
            assert np.max(np.abs(seen[:2])) < 1.0, (view, time)


def test_moments_are_arrows_around_their_direction(browser: Chromium, tmp_path: Path) -> None:
    """Counter-clockwise to whom the moment points at, as wide as it is large; a box of its own hides them."""
    tilted, most = np.array([0.0, 0.6, 0.8]), 3.0
    arm = Beam(name="arm", length=1.0, mass=1.0, axial_inertia=0.01)
    hinge = Revolute(name="hinge", parent="ground.O", child="arm.start", axis=tuple(tilted.tolist()))
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)}, bodies=(arm,), joints=(hinge,), forces=(JointDrive(name="drive", joint="hinge"),)
    )
    ramp = LinearSignal(times=(0.0, 1.0), values=(-most, most))
    model = CoupledModel(name="arm", systems={"mechanism": mechanism}, signals={"mechanism.drive.torque": ramp})
    page = tmp_path / "page.html"
    model.simulation(compiled=False).run(1.0).animate().save(page)
    browser.open(page)
    browser.until(f"{SCENE}?.runs.length === 1")
    browser.evaluate(f"{SCENE}.pause()")
    shown = f"(() => {{ const o = {SCENE}.arrows.moment.made[0].object; o.updateMatrixWorld(); return o; }})()"
    pictures = []
    for time, sign in ((0.0, -1.0), (0.25, -0.5), (1.0, 1.0)):
        browser.evaluate(f"{SCENE}.seek({time})")
        turned = np.reshape(browser.evaluate(f"{shown}.matrixWorld.elements"), (4, 4)).T[:3, :3]
        width = browser.evaluate(f"0.11 * {SCENE}.size") * abs(sign)
        np.testing.assert_allclose(turned[:, 2], width * np.sign(sign) * tilted, atol=2e-2 * width)
        assert np.linalg.det(turned / width) == pytest.approx(1.0, rel=0.1)
        pictures.append(
            browser.evaluate(f"({SCENE}.renderer.render({SCENE}.scene, {SCENE}.camera), {SCENE}.canvas.toDataURL())")
        )
    assert "moments up to 3.00 N m" in browser.evaluate("document.querySelector('.choices').textContent")
    assert "forces up to" not in browser.evaluate("document.querySelector('.choices').textContent")
    browser.evaluate(f"{SCENE}.panel.boxes.moment.click()")
    assert not browser.evaluate(f"{SCENE}.arrows.moment.object.visible")
    hidden = browser.evaluate(f"({SCENE}.renderer.render({SCENE}.scene, {SCENE}.camera), {SCENE}.canvas.toDataURL())")
    assert hidden != pictures[-1]
    assert browser.said == []


def test_keys_play_and_scrub(browser: Chromium, page: Path) -> None:
    begin(browser, page)
    browser.evaluate(f"{SCENE}.canvas.focus()")
    browser.key("Home")
    browser.key("ArrowRight")
    frame = 1.5 / browser.evaluate(f"{SCENE}.payload.time.count - 1")
    assert browser.evaluate(f"{SCENE}.time") == pytest.approx(frame)
    browser.key("ArrowRight", modifiers=8)
    assert browser.evaluate(f"{SCENE}.time") == pytest.approx(1.0 + frame, abs=frame)
    browser.key("End")
    assert browser.evaluate(f"{SCENE}.time") == pytest.approx(1.5)
    browser.key(" ")
    browser.until(f"{SCENE}.time > 0.05 && {SCENE}.time < 1.4")
    assert browser.evaluate(f"{SCENE}.playing")
    browser.key(" ")
    assert not browser.evaluate(f"{SCENE}.playing")


def test_runs_beside_tell_how_far_they_are_off(browser: Chromium, page: Path) -> None:
    """The point at which they are farthest apart is chosen: the tip of the boom, 9 m from its pin."""
    begin(browser, page)
    browser.evaluate(f"{SCENE}.seek(1.5)")
    one, other = point(browser, "boom.end"), point(browser, "boom.end", 1)
    off = 1e3 * float(np.linalg.norm(np.subtract(one, other)))
    told = browser.evaluate("document.querySelector('.apart').textContent")
    assert told.startswith(f"{EVIL}: boom.end is ")
    assert float(told.removeprefix(f"{EVIL}: boom.end is ").split()[0]) == pytest.approx(off, rel=2e-2)
    assert off > 0.1


def test_what_is_off_can_be_shown_many_times_as_far(browser: Chromium, page: Path) -> None:
    """Ten times as far from the first run, turned ten times as far, by hand; what is told stays true."""
    begin(browser, page)
    browser.evaluate(f"{SCENE}.seek(1.5)")
    one, other, told = (
        point(browser, "boom.end"),
        point(browser, "boom.end", 1),
        "document.querySelector('.apart').textContent",
    )
    before = browser.evaluate(told)
    browser.evaluate(f"{SCENE}.panel.factor.value = 10; {SCENE}.panel.factor.dispatchEvent(new Event('change'))")
    angle, off = (np.arctan2(each[1], each[0]) for each in (one, other))
    turned = angle + 10.0 * (off - angle)
    assert point(browser, "boom.end", 1) == pytest.approx([9.0 * cos(turned), 9.0 * sin(turned), 0.0], abs=1e-4)
    assert point(browser, "boom.end") == one
    assert browser.evaluate(told) == before


def test_events_carry_the_time_both_ways(browser: Chromium, page: Path) -> None:
    begin(browser, page)
    told = (
        "(() => { const e = document.querySelector('.mbsfmu-scene'); let time;"
        " e.addEventListener('timechange', (event) => { time = event.detail.time; });"
        " e.dispatchEvent(new CustomEvent('seek', { detail: { time: 0.75 } })); return time; })()"
    )
    assert browser.evaluate(told) == pytest.approx(0.75)


def test_slides_have_a_sleeve_that_goes_on_a_rail(browser: Chromium, tmp_path: Path) -> None:
    """Along the diagonal from (1, 0, 0) on, by the sine of a drive: the sleeve is at the carriage, the rail as long."""
    carriage = RigidBody(name="carriage", mass=1.0, inertia=(1.0, 1.0, 1.0))
    turned = (0.0, 0.0, 0.5)
    slide = Prismatic(
        name="rail",
        parent="ground.O",
        child="carriage.origin",
        axis=(1.0, 1.0, 0.0),
        orientation=turned,
        displacement=0.2,
    )
    drive = JointDrive(name="motor", joint="rail")
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0), ground={"O": (1.0, 0.0, 0.0)}, bodies=(carriage,), joints=(slide,), forces=(drive,)
    )
    model = CoupledModel(
        name="carriage",
        systems={"mechanism": mechanism},
        signals={"mechanism.motor.force": LinearSignal(times=(0.0, 1.0), values=(1.0, 1.0))},
    )
    run = model.simulation(compiled=False, step=1e-2).run(1.0)
    animation = run.animate()
    (symbol,) = animation.payload["joints"]
    diagonal = np.array([1.0, 1.0, 0.0]) / np.sqrt(2.0)
    assert (symbol["body"], symbol["rail"]["body"]) == (0, -1)
    np.testing.assert_allclose(symbol["rail"]["axis"], diagonal, atol=1e-6)
    turn = np.array([[cos(0.5), -sin(0.5), 0.0], [sin(0.5), cos(0.5), 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(turn @ symbol["axis"], diagonal, atol=1e-6)
    animation.save(tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    browser.until(f"Boolean({SCENE})")
    travel = browser.evaluate(f"{SCENE}.runs[0].travel({SCENE}.payload.joints[0])")
    moved = run["carriage.displacement"]
    assert travel == pytest.approx([moved.min(), moved.max()], abs=1e-4)
    assert moved.max() > 0.5
    browser.evaluate(f"{SCENE}.pause(); {SCENE}.seek(1.0)")
    sleeve = browser.evaluate(f"{SCENE}.runs[0].symbols[0].getWorldPosition({SCENE}.centre.clone()).toArray()")
    np.testing.assert_allclose(sleeve, [1.0, 0.0, 0.0] + moved[-1] * diagonal, atol=1e-4)


def test_rails_go_with_the_bodies_that_carry_them(browser: Chromium, tmp_path: Path) -> None:
    """Of the quick-return, whose block goes along a lever that turns: by as much as its distance from the pivot."""
    model = quick_return()
    run = model.simulation(compiled=False, step=5e-3).run(2.0)
    animation = run.animate()
    animation.save(tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    browser.until(f"Boolean({SCENE})")
    ((place, symbol),) = (
        (k, each) for k, each in enumerate(animation.payload["joints"]) if each.get("rail", {}).get("body", -1) >= 0
    )
    names = [each["name"] for each in animation.payload["bodies"]]
    assert (names[symbol["rail"]["body"]], names[symbol["body"]]) == ("lever", "block")
    low, high = browser.evaluate(f"{SCENE}.runs[0].travel({SCENE}.payload.joints[{place}])")
    data = model.to_dict()["systems"]["mechanism"]
    (pivot,) = (each["parent"].partition(".")[2] for each in data["joints"] if each["child"].startswith("lever."))
    gaps = [run[f"block.centre.{axis}.position"] - data["ground"][pivot][k] for k, axis in enumerate("xyz")]
    distance = np.sqrt(sum(gap**2 for gap in gaps))
    assert high - low == pytest.approx(np.ptp(distance), rel=2e-3)
    assert np.ptp(run["lever.angle"]) > 0.02
    assert np.ptp(distance) > 0.01


def test_joints_are_seen_on_dark_pages(browser: Chromium, page: Path) -> None:
    found = []
    for dark in (False, True):
        begin(browser, page, dark=dark)
        found.append(browser.evaluate(f"{SCENE}.runs[0].symbols[0].material.color.getHex()"))
    assert found[0] < 0x404040
    assert found[1] > 0xA00000


def test_what_is_seen_is_saved_as_a_video(browser: Chromium, page: Path) -> None:
    kept = "window.files = []; const make = URL.createObjectURL; URL.createObjectURL = (b) => (files.push(b), make(b))"
    made = browser.call("Page.addScriptToEvaluateOnNewDocument", source=kept)
    begin(browser, page)
    browser.evaluate(f"{SCENE}.panel.speed.value = 0.5; {SCENE}.panel.video.click()")
    assert browser.evaluate(f"{SCENE}.panel.video.textContent") == "end video"
    browser.until("files.length === 1")
    assert browser.evaluate("files[0].type").startswith("video/")
    assert browser.evaluate("files[0].size") > 5000
    assert browser.evaluate(f"{SCENE}.panel.video.textContent") == "video"
    assert browser.evaluate(f"{SCENE}.scene.background") is None
    assert browser.said == []
    browser.call("Page.removeScriptToEvaluateOnNewDocument", **made)


def test_axes_are_shown_as_they_point(browser: Chromium, page: Path) -> None:
    """From the front x goes to the right and y up; z to the viewer."""
    begin(browser, page)
    browser.evaluate(f"{SCENE}.look('front')")
    browser.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    places = browser.evaluate(
        "[...document.querySelectorAll('.axis')].map((e) => [parseFloat(e.style.right), parseFloat(e.style.bottom)])"
    )
    (x_right, x_up), (y_right, y_up), (z_right, z_up) = places
    assert x_right < z_right - 10
    assert y_up > z_up + 10
    assert abs(x_up - z_up) < 6
    assert abs(y_right - z_right) < 6
