// How long, how many and how large what customers send may be: each bound is kept exactly.

import { botMark, botRemove } from "../../src/wire/customer/bot.ts";
import { certificateUpload } from "../../src/wire/customer/certificate.ts";
import { cacheClear } from "../../src/wire/customer/clear.ts";
import { customerUpdate } from "../../src/wire/customer/customer.ts";
import { deploymentSiteCreate, secretRotate } from "../../src/wire/customer/deployment-site.ts";
import { devloveFileWrite } from "../../src/wire/customer/devlove-file.ts";
import { domainCreate, domainUpdate } from "../../src/wire/customer/domain.ts";
import { chatChannelWrite, emailChannelWrite } from "../../src/wire/customer/monitor-channels.ts";
import { emailSubscribe, recoveryStart } from "../../src/wire/customer/notifications.ts";
import { policyWrite } from "../../src/wire/customer/policy.ts";
import { trialStart, userProfileUpdate } from "../../src/wire/customer/user.ts";
import { items, number, testBounds } from "../support/bounds.ts";

/** So many characters; one at least is the name. */
const mailAddress = (n: number): string => `ada@${"example.".repeat(40)}`.slice(0, n - 3) + "org";

testBounds("a trial", trialStart.decode, { username: "ada" }, [["username", 1, 150]]);

testBounds(
  "a profile",
  userProfileUpdate.decode,
  { username: "ada", first_name: "Ada", last_name: "Example", password: "correct horse" },
  [
    ["username", 1, 150],
    ["first_name", 0, 150],
    ["last_name", 0, 150],
    ["password", 8, 1_024],
  ],
);

testBounds("a customer", customerUpdate.decode, { name: "Example Ltd" }, [["name", 1, 255]]);

testBounds("a deployment site", deploymentSiteCreate.decode, { tags: "eu" }, [["tags", 0, 4_096]]);

testBounds("a new secret", secretRotate.decode, { grace_seconds: 1 }, [
  ["grace_seconds", 0, 86_400, number],
]);

testBounds(
  "a domain",
  domainCreate.decode,
  { name: "www.example.com", link_to_deployment_sites_with_tags: "eu" },
  [
    ["name", 1, 1_024],
    ["link_to_deployment_sites_with_tags", 0, 4_096],
  ],
);

testBounds(
  "a sub-domain",
  domainUpdate.decode,
  { sub_domain: { name: "img.www.example.com" }, deployment_site_id: 7, deployment_id: 7 },
  [
    ["sub_domain.name", 1, 1_024],
    ["deployment_site_id", 1, 2 ** 53 - 1, number],
    ["deployment_id", 1, 2 ** 53 - 1, number],
  ],
);

testBounds("a devlove file", devloveFileWrite.decode, { schema: "devlove/1", content: "{}" }, [
  ["schema", 0, 255],
]);

testBounds("a clear", cacheClear.decode, { url_path_patterns: ["path:css"] }, [
  ["url_path_patterns", 1, 64, items("path:css")],
  ["url_path_patterns.0", 1, 4_096],
]);

testBounds(
  "a mark",
  botMark.decode,
  { attach_to_bot: "Examplebot", attach_to_domain: "www.example.com" },
  [
    ["attach_to_bot", 1, 255],
    ["attach_to_domain", 1, 1_024],
  ],
);

testBounds(
  "a removal",
  botRemove.decode,
  { remove_from_bot: "Examplebot", remove_from_domain: "www.example.com" },
  [
    ["remove_from_bot", 1, 255],
    ["remove_from_domain", 1, 1_024],
  ],
);

const pair = { domain: "www.example.com", bot: "Examplebot" };
const access = { domain: "www.example.com", policy: { unknown_bots_can_access: true } };
testBounds(
  "a policy",
  policyWrite.decode,
  { allow_access: [pair], deny_access: [pair], per_domain_policy: [access] },
  [
    ["allow_access", 0, 10_000, items(pair)],
    ["allow_access.0.bot", 1, 255],
    ["deny_access", 0, 10_000, items(pair)],
    ["per_domain_policy", 0, 10_000, items(access)],
    ["per_domain_policy.0.domain", 1, 1_024],
  ],
);

testBounds(
  "a certificate",
  certificateUpload.decode,
  { certificate: "-----BEGIN CERTIFICATE-----", private_key: "-----BEGIN PRIVATE KEY-----" },
  [
    ["certificate", 1, 65_536],
    ["private_key", 1, 16_384],
  ],
);

testBounds(
  "a chat channel",
  chatChannelWrite.decode,
  {
    monitor_uid: "team-a",
    chat_channel_name: "#alerts",
    chat_hook_url: "https://chat.example.com/hooks/8f14e45f",
  },
  [
    ["monitor_uid", 1, 255],
    ["chat_channel_name", 1, 255],
    ["chat_hook_url", 1, 2_048],
  ],
);

testBounds("a mail channel", emailChannelWrite.decode, { monitor_uid: "team-a" }, [
  ["monitor_uid", 1, 255],
]);

testBounds(
  "a subscription",
  emailSubscribe.decode,
  { notification_type: "weekly_report_email", email: "ada@example.com" },
  [["email", null, 254, mailAddress]],
);

testBounds("a recovery", recoveryStart.decode, { username: "ada", email: "ada@example.com" }, [
  ["username", 1, 150],
  ["email", 1, 254],
]);
