"""Stepping through a trace."""

import pytest
from playwright.sync_api import expect


@pytest.fixture
def trace(playground):
    playground.run_lesson()
    playground.open_view("trace")
    return playground


def test_steps_show_the_module_after_each(trace):
    steps = trace["trace-step"]
    expect(steps).to_have_count(7)  # the program itself, then six instructions
    steps.filter(has_text="sch.get_loops").click()
    expect(trace["trace-module"]).to_contain_text("T.grid(128, 128, 128)")
    steps.filter(has_text="sch.decompose_reduction").click()
    expect(trace["trace-module"]).to_contain_text('with T.block("C_init"):')


def test_a_step_shows_what_it_changed(trace):
    trace["trace-step"].filter(has_text="sch.decompose_reduction").click()
    module = trace["trace-module"]
    expect(module.locator("del").filter(has_text="with T.init():")).to_have_count(1)
    expect(module.locator(".added").filter(has_text='T.block("C_init")')).to_have_count(1)


def test_sampled_decisions_stand_out(trace):
    sampling = trace["trace-step"].filter(has_text="sch.sample_perfect_tile")
    expect(sampling.locator("mark")).to_contain_text("decision=[")


def test_arrow_keys_step(trace):
    trace["trace-step"].first.click()
    expect(trace["trace-step"].nth(0)).to_have_attribute("aria-selected", "true")
    trace.page.keyboard.press("ArrowDown")
    expect(trace["trace-step"].nth(1)).to_have_attribute("aria-selected", "true")
