"""Pieces of system structure descriptions, for packages that tests write."""

from __future__ import annotations

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<ssd:SystemStructureDescription version="1.0" name="package"
  xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription"
  xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon"
  xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues"
  xmlns:ssm="http://ssp-standard.org/SSP1/SystemStructureParameterMapping">"""
VOLT = 'kg="1" m="2" s="-3" A="-1"'
TAIL = f"""
  <ssd:Units>
    <ssc:Unit name="V"><ssc:BaseUnit {VOLT}/></ssc:Unit>
    <ssc:Unit name="mV"><ssc:BaseUnit {VOLT} factor="0.001"/></ssc:Unit>
    <ssc:Unit name="m"><ssc:BaseUnit m="1"/></ssc:Unit>
    <ssc:Unit name="K"><ssc:BaseUnit K="1"/></ssc:Unit>
    <ssc:Unit name="degC"><ssc:BaseUnit K="1" offset="273.15"/></ssc:Unit>
    <ssc:Unit name="degF"><ssc:BaseUnit K="1" factor="0.5555555555555556" offset="255.3722222222222"/></ssc:Unit>
  </ssd:Units>
  <ssd:DefaultExperiment startTime="0.0" stopTime="1.0"/>
</ssd:SystemStructureDescription>"""
SET = '<ssv:ParameterSet version="1.0" name="values"><ssv:Parameters>{}</ssv:Parameters>{}</ssv:ParameterSet>'


def connector(name: str, kind: str, type_: str = "Real", unit: str = "") -> str:
    unit = f' unit="{unit}"' if unit else ""
    return f'<ssd:Connector name="{name}" kind="{kind}"><ssc:{type_}{unit}/></ssd:Connector>'


def connectors(*each: str) -> str:
    return f"<ssd:Connectors>{''.join(each)}</ssd:Connectors>" if each else ""


def component(name: str, fmu: str, *each: str, bindings: str = "", attributes: str = "") -> str:
    inside = connectors(*each) + bindings
    return f'<ssd:Component name="{name}" source="resources/{fmu}.fmu" {attributes}>{inside}</ssd:Component>'


def wire(start: str, end: str, inside: str = "", attributes: str = "") -> str:
    ends = []
    for side, text in (("start", start), ("end", end)):
        element, dot, name = text.rpartition(".")
        ends.append((f'{side}Element="{element}" ' if dot else "") + f'{side}Connector="{name}"')
    return f"<ssd:Connection {' '.join(ends)} {attributes}>{inside}</ssd:Connection>"


def system(elements: str, *wires: str, outside: str = "", name: str = "root") -> str:
    connections = f"<ssd:Connections>{''.join(wires)}</ssd:Connections>" if wires else ""
    return f'<ssd:System name="{name}">{outside}<ssd:Elements>{elements}</ssd:Elements>{connections}</ssd:System>'


def binding(values: str, units: str = "", attributes: str = "", mapping: str = "") -> str:
    inside = f"<ssd:ParameterValues>{SET.format(values, units)}</ssd:ParameterValues>" if values else ""
    return f"<ssd:ParameterBinding {attributes}>{inside}{mapping}</ssd:ParameterBinding>"


def bindings(*each: str) -> str:
    return f"<ssd:ParameterBindings>{''.join(each)}</ssd:ParameterBindings>"


def value(name: str, type_: str, text: str, unit: str = "") -> str:
    unit = f' unit="{unit}"' if unit else ""
    return f'<ssv:Parameter name="{name}"><ssv:{type_} value="{text}"{unit}/></ssv:Parameter>'


SINE = connector("sine", "output", unit="mV")
SOURCE = component("source", "source", SINE)


def through(unit: str = "", **options: str) -> str:
    taken = connector("real_in", "input", unit=unit)
    return component("through", "feed_through", taken, connector("real_out", "output"), **options)
