// What each subject of the API is about, by its title, in a sentence: the heading's text in the documents.

export const subjectsAbout: Readonly<Record<string, string>> = {
  "Authentication token":
    "How a customer begins: a trial makes a user with a token. A lost token is replaced by mail.",
  "User profile": "A user reads and edits its own profile.",
  Customer: "The owners of deployment sites and domains.",
  "Deployment site":
    "One installation of an accelerator, with the secret that its agent signs in with.",
  Domain: "What is accelerated: main domains with their sub-domains, linked to deployment sites.",
  "Incoming logs": "Every request that visitors made, as the accelerators recorded it.",
  "Symmetric encryption keys":
    "The keys with which the certificates of a deployment site are sealed.",
  "Accelerator package": "Versions of the accelerator to download, and for publishers to upload.",
  Certificates: "Certificate chains with their private keys, for HTTPS at a deployment site.",
  "Devlove files":
    "How a domain is served: configuration that is stored with a viewset version, and its validator.",
  "Viewset versions": "Versions of a domain's files and devlove, one of which is active.",
  Import: "New viewset versions from files that lie on a deployment.",
  "Service status": "Whether the deployments of a domain report.",
  Bots: "Bad bots and VIP bots: addresses and ranges, marked, removed, checked and listed.",
  "Unreviewed bots": "Bots that visited from addresses in no list.",
  "Bot access policy": "The rules for bots that are in no list.",
  "Cache clearing": "Clears whatever matches patterns from the caches, with proof.",
  "Metrics configuration": "Scrape configuration for Prometheus.",
  "Monitor notification channels": "Where alerts go: chat hooks and e-mail addresses.",
  Notifications: "Subscriptions to reports and alerts by e-mail.",
};
