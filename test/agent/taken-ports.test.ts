// What `join` says where the agent could not listen.

import { expect, test } from "vitest";
import { takenPortsFault } from "../../src/agent/taken-ports.ts";

const at = (port: number) => ({ host: "0.0.0.0", port });
const settings = {
  "accelerator.listen": at(80),
  "accelerator.tls_listen": undefined,
  "metrics.listen": at(9_464),
};
const config = "/etc/accel-agent/shop/agent.yaml";
const plain = "/etc/accel-agent/agent.yaml";
const taken = {
  key: "accelerator.listen",
  address: at(80),
  text: `accelerator.listen 0.0.0.0:80 is accelerator.listen of ${plain} too`,
  config: plain,
} as const;

test("where another agent of the host has the port, another port is all that is advised: nobody is to stop what serves", () => {
  const others = [{ settings: { ...settings, "metrics.listen": at(8_080) } }];
  const fault = takenPortsFault({ config, settings, others }, [taken]);
  expect(fault.code).toBe("PORT_TAKEN");
  expect(fault.message).toBe(
    `nothing was changed and no code was used, for the agent could not listen:\n  ${taken.text}\nwrite other ports to ${config} and join again, such as:\n  accelerator.listen: 0.0.0.0:8081`,
  );
  expect(fault.hint).toBe(
    "Each agent of a host needs ports of its own: choose another one here or there.",
  );
});

test("where a program that is no agent has one, it may be stopped", () => {
  const text = "metrics.listen 0.0.0.0:9464 is taken by nginx (pid 7)";
  const other = {
    key: "metrics.listen",
    address: at(9_464),
    text,
    config: undefined,
  } as const;
  const fault = takenPortsFault({ config, settings, others: [] }, [taken, other]);
  expect(fault.message).toContain("\n  metrics.listen: 0.0.0.0:9465");
  expect(fault.hint).toMatch(/^Another process listens there: stop it, or /);
});
