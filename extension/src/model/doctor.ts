/** The doctor's report as text. */

import type { DoctorReport } from "../protocol.ts";
import { plain, type Say } from "./text.ts";

/** Where we look, how much is there, and each finding with its way out. */
export function doctorText(report: DoctorReport, say: Say): string {
  const head = [
    say("Codex home: {0}", plain(report.codexHome)),
    say("State folder: {0}", plain(report.stateDir)),
    say("Sessions: {0}", report.sessions),
  ];
  const findings = report.findings.map((finding) =>
    [
      `${finding.severity.toUpperCase()}  ${finding.code} (${finding.count})`,
      `    ${plain(finding.message)}`,
      ...(finding.path === null ? [] : [`    ${plain(finding.path)}`]),
      `    → ${plain(finding.wayOut)}`,
    ].join("\n"),
  );
  if (findings.length === 0) {
    findings.push(say("Nothing to report: everything that is there can be read."));
  }
  const skipped = Object.entries(report.skipped).map(
    ([reason, count]) => `    ${reason}: ${count}`,
  );
  if (skipped.length > 0) {
    findings.push([say("Left aside, by reason:"), ...skipped].join("\n"));
  }
  return `${[head.join("\n"), ...findings].join("\n\n")}\n`;
}
