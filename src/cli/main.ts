#!/usr/bin/env node
import { NodeFileSystem } from '../storage/index.js';
import { runCommandLine } from './command-line.js';
import { ProcessTerminal } from './terminal.js';

process.exitCode = await runCommandLine(process.argv.slice(2), new ProcessTerminal(), new NodeFileSystem());
