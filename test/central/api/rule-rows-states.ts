// Rows of the specification's states, and of the rules of the bot access policy.

import { expect } from "vitest";
import type { Row, Scene } from "./row-scene.ts";

const policy = "/bot-access-policy/";
const dayMs = 86_400_000;

const policies: readonly Row[] = [
  {
    line: "At least one of the four objects must be present",
    fact: "400 without; 200 with any",
    run: async (scene) => {
      await scene.gives(["POST", policy, {}], 400);
      const pairs = [{ domain: scene.domain, bot: "X" }];
      const per_domain_policy = [
        { domain: scene.domain, policy: { unknown_bots_can_access: true } },
      ];
      const general_policy = { unknown_bots_can_access: "true" };
      for (const body of [
        { allow_access: pairs },
        { deny_access: pairs },
        { general_policy },
        { per_domain_policy },
      ])
        await scene.gives(["POST", policy, body], 200);
    },
  },
  ...["The same bot (for the same domain) must not appear", "Bot access policy request lists"].map(
    (line): Row => ({
      line,
      fact: "400, naming the pair",
      run: async (scene) => {
        const pairs = [{ domain: scene.domain, bot: "X" }];
        await scene.gives(["POST", policy, { allow_access: pairs, deny_access: pairs }], 400, {
          errors: [{ path: "/deny_access/0" }],
        });
      },
    }),
  ),
];

const subscription = { notification_type: "weekly_report_email", email: "ops@example.com" };

async function subscribed(scene: Scene, more: object, statuses: readonly string[]): Promise<void> {
  const [subscribe, unsubscribe] = ["subscribe", "unsubscribe"].map(
    (verb) => `/notifications/email/${verb}/`,
  );
  await scene.gives(["POST", subscribe ?? "", subscription], 201, { status: statuses[0] });
  const ended = { ...subscription, ...more };
  await scene.gives(["POST", unsubscribe ?? "", ended], 200, { status: statuses[1] });
  await scene.gives(["POST", unsubscribe ?? "", subscription], 200, { status: statuses[2] });
  scene.api.clock = new Date(scene.api.clock.getTime() + 30 * dayMs + 1_000);
  await scene.gives(["POST", subscribe ?? "", subscription], 201, { status: statuses[3] });
}

const suspended = [
  "subscription_created",
  "unsubscribed",
  "subscription_inactive",
  "subscription_exists",
];
const ended = suspended.with(3, "subscription_reactivated");

const states: readonly Row[] = [
  {
    line: "Viewset version | PUT `/active-viewset/",
    fact: "it is the active one, and no other",
    run: async (scene) => {
      const content = JSON.stringify({ domains: { [scene.domain]: {} } });
      await scene.gives(["POST", "/{domain}/devlove/two/", { schema: "devlove/1", content }], 201);
      const versions = Object((await scene.ask("GET", "/active-viewset/{domain}/")).body);
      const path = `/active-viewset/{domain}/${versions[1].id}/`;
      await scene.gives(["PUT", path, {}], 200, { name: "two", is_active: true });
      const after = Object((await scene.ask("GET", "/active-viewset/{domain}/")).body);
      expect(after.map((one: { is_active: boolean }) => one.is_active)).toEqual([false, true]);
      await scene.gives(["PUT", "/active-viewset/{domain}/999/", {}], 404);
    },
  },
  {
    isAlone: true,
    line: "Email or monitor subscription | unsubscribe with `is_permanent` true",
    fact: "unsubscribed for good: 30 days later it is not active",
    run: async (scene) => subscribed(scene, { is_permanent: true }, ended),
  },
  ...[
    "Email or monitor subscription | unsubscribe with `is_permanent` absent",
    "30 days | suspension period",
  ].map((line): Row => ({
    isAlone: true,
    line,
    fact: "unsubscribed for 30 days: then it is active",
    run: async (scene) => subscribed(scene, {}, suspended),
  })),
];

export const stateRows: readonly Row[] = [...policies, ...states];
