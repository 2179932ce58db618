/** Shows messages and questions to the user. */

import * as vscode from "vscode";

type Show = (sentence: string, ...buttons: readonly string[]) => Thenable<string | undefined>;

/** Make a function that shows a message with buttons; it resolves after the chosen action. */
function notifier(show: () => Show) {
  return async (
    sentence: string,
    buttons: Readonly<Record<string, () => unknown>> = {},
  ): Promise<void> => {
    const chosen = await show()(sentence, ...Object.keys(buttons));
    await buttons[chosen ?? ""]?.();
  };
}

export const inform = notifier(() => vscode.window.showInformationMessage);
export const warn = notifier(() => vscode.window.showWarningMessage);
export const fail = notifier(() => vscode.window.showErrorMessage);

/** An action that the user can choose. */
export interface Action extends vscode.QuickPickItem {
  readonly run: () => unknown;
}

export function action(icon: string, label: string, run: Action["run"], detail = ""): Action {
  const about = detail === "" ? {} : { detail };
  return { label, iconPath: new vscode.ThemeIcon(icon), run, ...about };
}

/** Let the user choose an action, and run it. */
export async function askToDo(
  title: string,
  actions: readonly Action[],
  placeHolder = "Choose an action",
): Promise<void> {
  await (await vscode.window.showQuickPick(actions, { title, placeHolder }))?.run();
}

/** Ask for confirmation by a click on `button`. */
export async function confirm(question: string, detail: string, button: string) {
  const modal = { modal: true, detail };
  return (await vscode.window.showWarningMessage(question, modal, button)) === button;
}

/** The same, but Enter changes nothing: the editor applies Enter to the first button. */
export async function confirmLoss(
  question: string,
  detail: string,
  button: string,
  keep = "Keep",
): Promise<boolean> {
  const modal = { modal: true, detail };
  return (await vscode.window.showWarningMessage(question, modal, keep, button)) === button;
}

export function showDone(sentence: string): void {
  vscode.window.setStatusBarMessage(sentence, 3000);
}

/** Run one of the extension's commands. */
export function runCommand(name: string, ...on: readonly unknown[]): Thenable<unknown> {
  return vscode.commands.executeCommand(`codexCheckpoints.${name}`, ...on);
}
