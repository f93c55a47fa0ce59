// `join --replace` for another agent than the one that was meant.

import { expect, test } from "vitest";
import { meantAgent, movedFault } from "../../src/agent/moved-agent.ts";

const [one, two] = ["1".repeat(16), "2".repeat(16)];
const plain = { config: "/etc/accel-agent/agent.yaml", name16: one };
const shop = { config: "/etc/accel-agent/shop/agent.yaml", name16: two };

test.each([
  ["it would leave its site for that of another agent here", plain, two, shop],
  ["it joins its own site again", shop, two, undefined],
  ["nobody here has the site of the code", plain, "3".repeat(16), undefined],
  [
    "it belongs to no site yet: two agents of a host may have one site",
    { ...plain, name16: undefined },
    two,
    undefined,
  ],
])("%s", (_what, command, name16, meant) => {
  expect(
    meantAgent(
      command,
      name16,
      [plain, shop].filter((other) => other !== command),
    ),
  ).toBe(meant);
});

test("the fault names the agent that was meant, and the line for it", () => {
  const fault = movedFault(plain, shop, "https://central.example.com");
  expect(fault.code).toBe("HOST_TAKEN");
  expect(fault.message).toBe(
    `nothing was changed: the agent shop of this host (${shop.config}) belongs to the deployment site of this code, and the agent of ${plain.config} to the one with name16 ${one}`,
  );
  expect(fault.hint).toContain(
    "`accel-agent join --central https://central.example.com --replace --instance shop`",
  );
  expect(movedFault(shop, plain, "https://c.example").hint).toContain(
    "`accel-agent join --central https://c.example --replace`, with",
  );
});
