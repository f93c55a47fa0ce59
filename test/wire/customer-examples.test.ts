// The examples of the document are answers that there could be: what they say of the whole follows from what they say of its parts.

import { expect, test } from "vitest";
import { ServiceStatus } from "../../src/wire/customer/service-status.ts";
import { ImportProgress, ViewsetVersion } from "../../src/wire/customer/viewset.ts";

function examplesOf(schema: object): readonly unknown[] {
  const { examples } = Object(schema);
  expect(examples).not.toHaveLength(0);
  return examples;
}

test("a deployment reports when each of its instances does, and is behind when one is", () => {
  for (const status of examplesOf(ServiceStatus))
    for (const deployment of Object.values(Object(status)).flat()) {
      const { instances, ...told } = Object(deployment);
      const all = (key: string): readonly unknown[] =>
        instances.map((one: object) => Object(one)[key]);
      const reports = all("is_log_agent_reporting_data");
      expect(told).toMatchObject({
        is_log_agent_reporting_data: reports.length > 0 && reports.every((one) => one === true),
      });
      if (instances.length > 0)
        expect(told).toMatchObject({ is_behind: all("is_behind").includes(true) });
    }
});

test("a version that is active is not obsolete, and applied where all deployments have it", () => {
  for (const version of examplesOf(ViewsetVersion)) {
    const {
      is_active: isActive,
      when_obsoleted: obsoleted,
      activation,
      deployments,
    } = Object(version);
    expect(obsoleted === null).toBe(isActive);
    for (const { state } of deployments) expect(state).toBe(activation);
  }
});

test("an import ends after it began, and has made a version only when it is done", () => {
  for (const one of examplesOf(ImportProgress)) {
    const { status, when_started: began, when_ended: ended, viewset_id: made } = Object(one);
    expect(ended !== null).toBe(status !== "started");
    if (ended !== null) expect(Date.parse(ended)).toBeGreaterThanOrEqual(Date.parse(began));
    expect(made !== undefined).toBe(status === "done");
  }
});
